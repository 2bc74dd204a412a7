// Metrics of a client with prometheus-cpp: its counters at the time of each scrape, and histograms of the times of
// waits and renewals.
//
//   prometheus_observer [URL]
//
// Names of locks are no labels, because each value of a label is a separate time series, and there may be many names.
#include <prometheus/collectable.h>
#include <prometheus/histogram.h>
#include <prometheus/metric_family.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

#include <chrono>
#include <cstdint>
#include <iostream>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <dlock/dlock.hpp>

namespace {

// The registry must outlive the client.
class DurationsObserver final : public dlock::Observer {
 public:
  explicit DurationsObserver(prometheus::Registry& registry)
      : wait_(histogram(registry, "dlock_acquire_wait_seconds", "From the call to the grant.")),
        latency_(histogram(registry, "dlock_renewal_latency_seconds", "From sending a renewal to its answer.")),
        hold_(histogram(registry, "dlock_hold_seconds", "From the grant to the release.")) {}

  void acquired(const dlock::AcquiredEvent& e) override { wait_.Observe(seconds(e.wait)); }
  void renewed(const dlock::RenewedEvent& e) override { latency_.Observe(seconds(e.latency)); }
  void released(const dlock::ReleasedEvent& e) override { hold_.Observe(seconds(e.hold)); }

 private:
  static prometheus::Histogram& histogram(prometheus::Registry& registry, const char* name, const char* help) {
    const prometheus::Histogram::BucketBoundaries upper_bounds{0.001, 0.01, 0.1, 1, 10, 100, 1000};
    return prometheus::BuildHistogram().Name(name).Help(help).Register(registry).Add({}, upper_bounds);
  }
  static double seconds(std::chrono::nanoseconds duration) { return std::chrono::duration<double>(duration).count(); }

  prometheus::Histogram& wait_;
  prometheus::Histogram& latency_;
  prometheus::Histogram& hold_;
};

// Client::stats(). Unlike counters of events, these miss nothing when the observer is too slow. The client must outlive
// this object.
class ClientCounters final : public prometheus::Collectable {
 public:
  explicit ClientCounters(const dlock::Client& client) : client_(client) {}

  [[nodiscard]] std::vector<prometheus::MetricFamily> Collect() const override {
    const dlock::Stats stats = client_.stats();
    return {counter("dlock_acquired_total", "Leases that were granted.", stats.acquired),
            counter("dlock_busy_total", "Tries that found the lock held.", stats.busy),
            counter("dlock_timed_out_total", "Waits that ended without the lock.", stats.timed_out),
            counter("dlock_failed_total", "Acquires that ended with another error.", stats.failed),
            counter("dlock_lost_total", "Leases that were lost.", stats.lost),
            counter("dlock_renewals_failed_total", "Renewals that failed and were retried.", stats.renew_failed),
            counter("dlock_reconnects_total", "Connections that broke.", stats.reconnects),
            counter("dlock_events_dropped_total", "Events that the observer was too slow for.", stats.events_dropped),
            gauge("dlock_held", "Leases that are held now.", stats.held),
            gauge("dlock_waiting", "Acquires that wait now.", stats.waiting)};
  }

 private:
  static prometheus::MetricFamily counter(const char* name, const char* help, std::uint64_t value) {
    prometheus::ClientMetric metric;
    metric.counter.value = static_cast<double>(value);
    return {name, help, prometheus::MetricType::Counter, {metric}};
  }
  static prometheus::MetricFamily gauge(const char* name, const char* help, std::uint64_t value) {
    prometheus::ClientMetric metric;
    metric.gauge.value = static_cast<double>(value);
    return {name, help, prometheus::MetricType::Gauge, {metric}};
  }

  const dlock::Client& client_;
};

// Prints the metrics without help, and without what differs in each run. A program has an exposer instead:
//
//   prometheus::Exposer exposer("127.0.0.1:9102");
//   exposer.RegisterCollectable(registry);
//   exposer.RegisterCollectable(counters);
void show(const prometheus::Collectable& metrics) {
  std::stringstream text;
  prometheus::TextSerializer().Serialize(text, metrics.Collect());
  for (std::string line; std::getline(text, line);) {
    const bool differs = line.find("_bucket{") != std::string::npos || line.find("_sum ") != std::string::npos;
    if (!line.starts_with('#') && !differs) std::cout << line << '\n';
  }
}

}  // namespace

int main(int argc, char** argv) {
  const std::string url = argc > 1 ? argv[1] : "memory://";
  try {
    const auto registry = std::make_shared<prometheus::Registry>();
    {
      const dlock::Client client = dlock::connect(url, {.observer = std::make_shared<DurationsObserver>(*registry)});
      const auto counters = std::make_shared<ClientCounters>(client);
      dlock::DistributedLock lock = client.make_lock("orders/42");
      (void)lock.acquire().release();
      const dlock::Lease lease = lock.acquire();
      if (lock.try_acquire()) std::cout << "unexpected: got a lock that is held\n";
      show(*counters);
    }  // the client has delivered its events when it is destroyed
    show(*registry);
  } catch (const dlock::Error& e) {
    std::cerr << "prometheus_observer: " << e.what() << '\n';
    return 1;
  }
}
