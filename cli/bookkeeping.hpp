// Writes the account of what dlock did: --json and --metrics.
#pragma once

#include <exception>
#include <optional>

#include "cli/account.hpp"
#include "cli/arguments.hpp"
#include "cli/metrics.hpp"
#include "cli/report_file.hpp"

namespace dlock::cli {

class Bookkeeping {
 public:
  // Checks that the files can be written, before any lock is acquired. Throws UsageError.
  explicit Bookkeeping(const Arguments& arguments);

  // Calls `work`, which fills in the account and holds nothing when it ends, and writes the account, even if `work`
  // throws. A failed write is reported, but changes no exit status: the command has run.
  template <class Work>
  Account keep(const Work& work) {
    Account account;
    try {
      work(account);
    } catch (const std::exception& error) {
      account.fail(error);
      enter(account);
      throw;
    }
    enter(account);
    return account;
  }

 private:
  void enter(const Account& account);

  const Arguments& arguments_;
  std::optional<ReportFile> json_;
  std::optional<MetricsFile> metrics_;
};

}  // namespace dlock::cli
