// What the blocks of the documents leave to their readers: names that they use and do not declare. A block becomes the
// body of a function below this, so that what it declares itself comes first.
#pragma once

#include <asio.hpp>
#include <cassert>
#include <chrono>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include <dlock/asio.hpp>
#include <dlock/conformance/suite.hpp>
#include <dlock/dlock.hpp>

#include "custom_backend/table_backend.hpp"

#if DLOCK_DOCUMENTS_POSTGRES
#include <libpq-fe.h>

#include <dlock/postgres.hpp>

extern PGconn* connection;
#endif

#if DLOCK_DOCUMENTS_MYSQL
#include <mysql.h>

#include <dlock/mysql.hpp>

extern MYSQL* mysql;
#endif

using namespace std::chrono_literals;  // NOLINT(google-global-names-in-headers): as a reader would

extern std::string url;
extern dlock::Client client;
extern dlock::DistributedLock lock, lock_a, lock_b;
extern std::vector<dlock::DistributedLock> locks;
extern dlock::Lease lease;
extern std::shared_ptr<dlock::Observer> observer;
extern std::stop_token stop, stop_token;
extern asio::io_context io;

void work(const dlock::Lease&);
void work(const dlock::Lease&, const std::stop_token&);
void work(const dlock::MultiLease&);
bool work_left();
void step(dlock::FencingToken);
void schedule(dlock::FencingToken);
void long_work(const std::stop_token&);
void wait_for_work(const std::stop_token&);
void show(const std::optional<dlock::Leader>&);
void report(const std::string&);

struct MyFixture : dlock::conformance::UrlFixture {
  MyFixture();
};
