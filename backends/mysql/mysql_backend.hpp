// mysql:// and mariadb://: locks in a MariaDB or MySQL database. See docs/backends/mysql.md for the layout of the
// tables and the guarantees.
//
// sql::RowLocks or sql::SessionLocks keep the locks, as the strategy says; Inspection answers questions for all
// strategies.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <dlock/spi/backend.hpp>

#include "backends/common/connection_news.hpp"
#include "backends/common/sql/commands.hpp"
#include "backends/common/sql/full_server.hpp"
#include "backends/common/sql/services.hpp"
#include "backends/common/sql/session.hpp"
#include "backends/mysql/administration/diagnosis.hpp"
#include "backends/mysql/administration/inspection.hpp"
#include "backends/mysql/errors.hpp"
#include "backends/mysql/options.hpp"
#include "backends/mysql/schema.hpp"

namespace dlock::mysql {

class MysqlBackend final : public Backend {
 public:
  MysqlBackend(BackendHost& host, Options options, OpenConnection open);
  ~MysqlBackend() override;

  [[nodiscard]] Capabilities capabilities() const noexcept override { return locks_->capabilities(); }

  [[nodiscard]] std::unique_ptr<Contention> contend(const LockRequest& request, GrantSink& sink) override {
    return locks(request.kind).contend(request, sink);
  }
  void renew(const Grant& grant, RenewHandler done) override { locks(grant.kind).renew(grant, std::move(done)); }
  void release(const Grant& grant, ReleaseHandler done) override { locks(grant.kind).release(grant, std::move(done)); }
  [[nodiscard]] std::unique_ptr<Watch> watch(LockKind kind, const std::string& name,
                                             std::function<void()> changed) override {
    return locks(kind).watch(kind, name, std::move(changed));
  }
  void close(std::function<void()> done) override;

  void inspect(LockKind kind, const std::string& name, Handler<LockInfo> done) override {
    inspection_.inspect(kind, name, std::move(done));
  }
  void list(LockKind kind, Handler<std::vector<LockInfo>> done) override { inspection_.list(kind, std::move(done)); }
  void break_lock(LockKind kind, const std::string& name, Handler<bool> done) override {
    inspection_.break_lock(kind, name, std::move(done));
  }
  void forget(const Forgetting& what, Handler<std::vector<std::string>> done) override {
    inspection_.forget(what, std::move(done));
  }
  void diagnose(Handler<std::vector<Finding>> done) override { mysql::diagnose(commands_, options_, std::move(done)); }
  void initialize(Handler<std::vector<std::string>> done) override {
    schema_.initialize(commands_.answer_by(), std::move(done));
  }

 private:
  [[nodiscard]] Backend& locks(LockKind kind);

  const Options options_;
  const MysqlDialect dialect_;
  sql::FullServer full_;
  const sql::Dialling dialling_;
  Schema schema_;
  const sql::SetUp set_up_;
  common::ConnectionNews news_;  // reports nothing if locks live in sessions
  common::ConnectionNews::Source commands_news_;
  sql::Commands commands_;
  Inspection inspection_;
  const sql::Services services_;
  const std::unique_ptr<Backend> locks_;               // plain locks; all kinds if locks live in sessions
  std::map<LockKind, std::unique_ptr<Backend>> rows_;  // other kinds, made at their first use
};

// mysql://[user[:password]@]host[:3306][,host...][/database][?strategy=table|optimistic|for-update|named]
//     [&schema=dlock][&key=verbatim][&pooler=session|transaction][&single_writer=true][&max_connections=10][&tls=...]
[[nodiscard]] std::unique_ptr<Backend> make_mysql_backend(BackendHost& host, const BackendConfig& config);

}  // namespace dlock::mysql
