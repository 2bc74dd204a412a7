// Where the account of what dlock did goes beside its messages: --json and --metrics.
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
  // That the files can be written is found out here, before anything is locked. Throws UsageError.
  explicit Bookkeeping(const Arguments& arguments);

  // Does the work, which fills in the account and holds nothing when it ends, and enters the account; also if the work
  // throws. What cannot be written is said, and changes no exit status: the command has run.
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
