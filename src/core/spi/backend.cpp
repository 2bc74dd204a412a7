#include <dlock/spi/backend.hpp>

#include <string>
#include <utility>

#include "util/names.hpp"

namespace dlock {

namespace {

Failure unsupported(const Backend& backend, const char* what) {
  return {errc::unsupported, "backend \"" + std::string(backend.capabilities().backend) + "\" cannot " + what};
}

}  // namespace

std::unique_ptr<Watch> Backend::watch(LockKind /*kind*/, const std::string& /*name*/,
                                      std::function<void()> /*changed*/) {
  return nullptr;
}

void Backend::renew(const Grant& /*grant*/, RenewHandler done) {
  done({.status = RenewOutcome::Status::failed, .failure = unsupported(*this, "renew a lease")});
}

Failure other_permits(const LockRequest& request, std::uint32_t theirs) {
  return {errc::invalid_argument, "semaphore " + util::quoted(request.name) + " is in use with " +
                                      std::to_string(theirs) + " permits, but the request says " +
                                      std::to_string(request.permits)};
}

std::string holder_text(const LockRequest& request) {
  if (request.kind != LockKind::election) return request.holder;
  return request.holder + '\n' + request.value;
}

void set_holder(LockInfo& info, std::string_view text) {
  const std::size_t end = info.kind == LockKind::election ? text.find('\n') : std::string_view::npos;
  info.holder = text.substr(0, end);
  if (end != std::string_view::npos) info.value = text.substr(end + 1);
}

Failure unanswered_question(Failure why) {
  if (why.code == errc::ambiguous) why.code = errc::unavailable;
  return why;
}

void Backend::ping(const std::string& name, Handler<bool> done) {
  inspect(LockKind::lock, name, [done = std::move(done)](const Result<LockInfo>& info) {
    done(info.ok() ? Result<bool>(true) : Result<bool>(info.failure()));
  });
}

void Backend::inspect(LockKind /*kind*/, const std::string& /*name*/, Handler<LockInfo> done) {
  done(unsupported(*this, "inspect a lock"));
}

void Backend::list(LockKind /*kind*/, Handler<std::vector<LockInfo>> done) {
  done(unsupported(*this, "list its locks"));
}

void Backend::break_lock(LockKind /*kind*/, const std::string& /*name*/, Handler<bool> done) {
  done(unsupported(*this, "break a lock"));
}

void Backend::forget(const Forgetting& /*what*/, Handler<std::vector<std::string>> done) {
  done(unsupported(*this, "forget names"));
}

void Backend::diagnose(Handler<std::vector<Finding>> done) {
  done(std::vector<Finding>{});
}

void Backend::initialize(Handler<std::vector<std::string>> done) {
  done(std::vector<std::string>{});
}

void Backend::close(std::function<void()> done) {
  done();
}

}  // namespace dlock
