// The functions of <dlock/asio.hpp> and of <dlock/boost_asio.hpp>, which define DLOCK_ASIO, the name space for them,
// and in it the name spaces and types `net` and `ErrorCode` of the Asio that they are for.

namespace dlock {

inline namespace DLOCK_ASIO {

namespace operations {

// Tells the pending operations when the execution context ends.
class PendingService final : public net::execution_context::service {
 public:
  inline static net::execution_context::id id;

  explicit PendingService(net::execution_context& context) : net::execution_context::service(context) {}
  [[nodiscard]] const std::shared_ptr<detail::PendingOperations>& operations() const noexcept { return operations_; }

 private:
  void shutdown() noexcept override { operations_->close(); }

  const std::shared_ptr<detail::PendingOperations> operations_ = std::make_shared<detail::PendingOperations>();
};

template <class Executor>
[[nodiscard]] std::shared_ptr<detail::PendingOperations> pending_operations(const Executor& executor) {
  using Context = net::execution::context_as_t<net::execution_context&>;
  if constexpr (net::can_query<const Executor&, Context>::value) {
    return net::use_service<PendingService>(net::query(executor, Context())).operations();
  } else {  // no context that could end
    return std::make_shared<detail::PendingOperations>();
  }
}

// An operation in progress, in memory of the handler's allocator.
template <class Handler, class Result>
struct Operation {
  using Executor = net::associated_executor_t<Handler, net::system_executor>;
  using StopCallback = std::stop_callback<std::function<void()>>;

  explicit Operation(Handler&& to_call)
      : executor(net::get_associated_executor(to_call, net::system_executor())),
        work(executor),
        handler(std::move(to_call)) {}

  const Executor executor;
  const net::executor_work_guard<Executor> work;
  Handler handler;
  std::optional<StopCallback> on_cancel;  // of AcquireOptions::cancel
  ErrorCode error = {};
  Result result = {};
};

// Calls the handler, on its executor.
template <class Handler, class Result>
class Delivery {
 public:
  explicit Delivery(std::shared_ptr<Operation<Handler, Result>> operation) noexcept
      : operation_(std::move(operation)) {}

  void operator()() {
    Handler handler = std::move(operation_->handler);
    const ErrorCode error = operation_->error;
    Result result = std::move(operation_->result);
    operation_.reset();  // before the handler, which may use the memory again
    std::move(handler)(error, std::move(result));
  }

 private:
  std::shared_ptr<Operation<Handler, Result>> operation_;
};

// The handler that dlock gets; runs on the engine thread, or inside the call that starts the operation.
template <class Handler, class Result>
class Completion {
 public:
  explicit Completion(detail::PendingOperations::Place place) noexcept : place_(std::move(place)) {}

  void operator()(std::error_code error, Result result) {
    place_.complete([&](std::shared_ptr<void> pending) {
      auto operation = std::static_pointer_cast<Operation<Handler, Result>>(std::move(pending));
      operation->on_cancel.reset();
      if (error) operation->error = error;
      operation->result = std::move(result);
      const auto executor = operation->executor;
      net::post(executor, Delivery<Handler, Result>(std::move(operation)));
    });
  }

 private:
  detail::PendingOperations::Place place_;
};

// Makes an operation that its handler's execution context owns. `cancel` requests `stop`.
template <class Result, class Given>
[[nodiscard]] auto begin(Given&& handler, const std::stop_source& stop, const std::stop_token& cancel = {}) {
  using Handler = std::decay_t<Given>;
  const auto allocator = net::get_associated_allocator(handler);
  auto operation = std::allocate_shared<Operation<Handler, Result>>(allocator, Handler(std::forward<Given>(handler)));
  if (cancel.stop_possible()) operation->on_cancel.emplace(cancel, [stop] { (void)stop.request_stop(); });
  auto pending = pending_operations(operation->executor);
  return Completion<Handler, Result>({std::move(pending), std::move(operation), stop});
}

// Starts an acquire or a campaign: call(lock, options, handler).
template <class Result, class Call>
struct InitiateAcquire {
  template <class Handler, class KeptLock, class Options>
  void operator()(Handler&& handler, KeptLock lock, Options options) const {
    const std::stop_source stop;
    auto slot = net::get_associated_cancellation_slot(handler);
    if (slot.is_connected()) {
      // It stays in the slot after the end, when it has no effect: only the handler's executor may use the slot.
      slot.assign([stop](net::cancellation_type type) {
        if (type != net::cancellation_type::none) (void)stop.request_stop();
      });
    }
    auto done = begin<Result>(std::forward<Handler>(handler), stop, options.cancel);
    options.cancel = stop.get_token();
    Call()(detail::unwrap(lock), options, std::move(done));
  }
};

struct InitiateRelease {
  template <class Handler, class KeptLease>
  void operator()(Handler&& handler, KeptLease lease) const {
    detail::unwrap(lease).async_release(
        begin<bool>(std::forward<Handler>(handler), std::stop_source(std::nostopstate)));
  }
};

struct Acquire {
  void operator()(auto& lock, const AcquireOptions& options, auto done) const {
    lock.async_acquire(options, std::move(done));
  }
};
struct AcquireShared {
  void operator()(ReadWriteLock& lock, const AcquireOptions& options, auto done) const {
    lock.async_acquire_shared(options, std::move(done));
  }
};
struct Campaign {
  void operator()(Election& election, const CampaignOptions& options, auto done) const {
    election.async_campaign(options, std::move(done));
  }
};

template <class Lock>
using LeaseOf = decltype(std::declval<Lock&>().acquire());

}  // namespace operations

// Acquires a DistributedLock, a ReadWriteLock to write, a permit of a Semaphore, or all locks of a MultiLock. Completes
// with void(ErrorCode, Lease), of a MultiLock with void(ErrorCode, MultiLease). options: AcquireOptions, in braces or a
// variable. Errors as of DistributedLock::async_acquire().
template <class Lock, class Options = detail::BracedAcquireOptions,
          operations::net::completion_token_for<void(operations::ErrorCode, operations::LeaseOf<Lock>)> Token>
auto async_acquire(Lock&& lock, Options&& options, Token&& token) {
  detail::check_options<Options, detail::BracedAcquireOptions, AcquireOptions>();
  using Result = operations::LeaseOf<Lock>;
  return operations::net::async_initiate<Token, void(operations::ErrorCode, Result)>(
      operations::InitiateAcquire<Result, operations::Acquire>(), token, detail::Kept<Lock>(std::forward<Lock>(lock)),
      detail::owned(options));
}

// The same of a ReadWriteLock to read.
template <class Lock, class Options = detail::BracedAcquireOptions,
          operations::net::completion_token_for<void(operations::ErrorCode, Lease)> Token>
auto async_acquire_shared(Lock&& lock, Options&& options, Token&& token) {
  static_assert(std::is_same_v<std::decay_t<Lock>, ReadWriteLock>, "only a ReadWriteLock has a shared side");
  detail::check_options<Options, detail::BracedAcquireOptions, AcquireOptions>();
  return operations::net::async_initiate<Token, void(operations::ErrorCode, Lease)>(
      operations::InitiateAcquire<Lease, operations::AcquireShared>(), token,
      detail::Kept<Lock>(std::forward<Lock>(lock)), detail::owned(options));
}

// Completes with void(ErrorCode, Lease) when this candidate leads. options: CampaignOptions, in braces or a variable.
// Errors as of Election::async_campaign().
template <class AnyElection, class Options = detail::BracedCampaignOptions,
          operations::net::completion_token_for<void(operations::ErrorCode, Lease)> Token>
auto async_campaign(AnyElection&& election, Options&& options, Token&& token) {
  static_assert(std::is_same_v<std::decay_t<AnyElection>, Election>, "the first argument must be a dlock::Election");
  detail::check_options<Options, detail::BracedCampaignOptions, CampaignOptions>();
  return operations::net::async_initiate<Token, void(operations::ErrorCode, Lease)>(
      operations::InitiateAcquire<Lease, operations::Campaign>(), token,
      detail::Kept<AnyElection>(std::forward<AnyElection>(election)), detail::owned(options));
}

// Releases a Lease or a MultiLease. Completes with void(ErrorCode, bool was_ours), as Lease::release() returns and
// throws.
template <class AnyLease, operations::net::completion_token_for<void(operations::ErrorCode, bool)> Token>
auto async_release(AnyLease&& lease, Token&& token) {
  return operations::net::async_initiate<Token, void(operations::ErrorCode, bool)>(
      operations::InitiateRelease(), token, detail::Kept<AnyLease>(std::forward<AnyLease>(lease)));
}

}  // namespace DLOCK_ASIO

}  // namespace dlock
