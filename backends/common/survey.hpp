// Queries many locks, a limited number at a time, and combines the answers.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <dlock/spi/backend.hpp>

namespace dlock::common {

// In tasks only.
class Survey : public std::enable_shared_from_this<Survey> {
 public:
  // nullopt: there is no lock of that name.
  using Answer = std::function<void(Result<std::optional<LockInfo>>)>;
  // Calls the answer once, now or later.
  using Look = std::function<void(const std::string& name, Answer answer)>;

  // done: gets all locks that were found, sorted by name, or the first failure; later answers are ignored. look lives
  // until the last answer.
  static void run(std::vector<std::string> names, Look look, Backend::Handler<std::vector<LockInfo>> done);

 private:
  static constexpr std::size_t looks_at_once = 64;

  Survey(std::vector<std::string> names, Look look, Backend::Handler<std::vector<LockInfo>> done)
      : names_(std::move(names)), look_(std::move(look)), done_(std::move(done)) {}

  void next();
  void seen(Result<std::optional<LockInfo>> info);
  void finish(Result<std::vector<LockInfo>> result);

  const std::vector<std::string> names_;
  Look look_;
  Backend::Handler<std::vector<LockInfo>> done_;
  std::size_t next_ = 0;
  bool going_on_ = false;
  std::size_t under_way_ = 0;
  std::vector<LockInfo> found_;
};

}  // namespace dlock::common
