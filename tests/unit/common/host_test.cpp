// Hosts of a URL, files of passwords and certificates, and the findings that backends share.
#include "backends/common/host.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>
#include <vector>

#include "backends/common/findings.hpp"
#include "backends/common/password_file.hpp"
#include "backends/common/tls.hpp"
#include "tests/support/refusals.hpp"
#include "tests/support/throwaway_certificate.hpp"
#include "util/unique_fd.hpp"

namespace dlock::common {
namespace {

using namespace std::chrono_literals;
using Severity = Finding::Severity;

std::string hosts_in(const std::string& url) {
  return to_string(hosts_of(Url::parse(url), 7000, 3));
}

TEST(Hosts, List_IsTakenInOrderOrRefusedByName) {
  EXPECT_EQ(hosts_in("x://b:1,a,[::1]:2"), "b:1,a:7000,[::1]:2");
  EXPECT_EQ(hosts_in("x://"), "localhost:7000");
  EXPECT_EQ(hosts_in("x:///path"), "localhost:7000");
  test::expect_refused(hosts_in, {{"x://a,b,c,d", "host: more than 3 in the list"},
                                  {"x://a,b%2Fc", "host: \"b/c\" is not a host name"},
                                  {"x://%2Frun", "/run"}});
  const auto anything = [](const std::string&) {};
  EXPECT_EQ(to_string(hosts_of(Url::parse("x://%2Frun%2Fpg"), 7000, 1, anything)), "/run/pg:7000");
}

TEST(Hosts, ThisMachine_IsRecognised) {
  for (const char* name : {"localhost", "127.0.0.1", "127.1.2.3", "::1", "/run/postgresql"}) {
    EXPECT_TRUE((Host{.name = name, .port = 1}.is_this_machine())) << name;
  }
  for (const char* name : {"db1", "10.0.0.1", "127.example.net", "localhost.example.net", "::2"}) {
    EXPECT_FALSE((Host{.name = name, .port = 1}.is_this_machine())) << name;
  }
}

TEST(CommonFindings, AnswersClocksAndEncryption_AreJudged) {
  const std::pair<Finding, std::pair<Severity, const char*>> rows[] = {
      {server_answered("db1:7000", 1'500'001ns), {Severity::ok, "db1:7000 answered within 1501us"}},
      {compared_clocks(1005, 1000, Severity::warning, "x"), {Severity::ok, ""}},
      {compared_clocks(1060, 1000, Severity::warning, "leases end early"),
       {Severity::warning, "ahead of ours; if it is corrected, leases end early"}},
      {compared_clocks(994, 1000, Severity::note, "x"), {Severity::note, "6s behind ours"}},
      {not_encrypted(true, "; do"), {Severity::ok, ""}},
      {not_encrypted(false, "; do something"), {Severity::warning, "change all traffic; do something"}}};
  for (const auto& [finding, expected] : rows) {
    EXPECT_EQ(finding.severity, expected.first) << finding.message;
    EXPECT_NE(finding.message.find(expected.second), std::string::npos) << finding.message;
  }
}

// --- Files of passwords ----------------------------------------------------------------------------------------------

class PasswordFileTest : public testing::Test {
 protected:
  [[nodiscard]] PasswordFile holding(const std::string& content) const {
    std::ofstream(path_) << content;
    return {.parameter = "password_file", .path = path_};
  }
  // Why it cannot be read, without the parameter and the path.
  [[nodiscard]] static std::string problem(const PasswordFile& file) {
    const auto password = file.read();
    EXPECT_FALSE(password.ok());
    EXPECT_EQ(password.failure().code, errc::unavailable);
    const std::string start = "password_file: \"" + file.path + "\": ";
    EXPECT_TRUE(password.failure().detail.starts_with(start)) << password.failure().detail;
    return password.failure().detail.substr(start.size());
  }

  rig::ScratchDirectory directory_;
  const std::string path_ = directory_.path() + "/secret";
};

TEST_F(PasswordFileTest, Content_IsReadAgainEachTimeWithoutTheEndOfItsLine) {
  const PasswordFile file = holding("first\n");
  EXPECT_EQ(file.read().value(), "first");
  for (const auto& [content, password] :
       {std::pair{"second", "second"}, {"third\r\n", "third"}, {" a b \n", " a b "}}) {
    std::ofstream(path_) << content;
    EXPECT_EQ(file.read().value(), password);
  }
}

TEST_F(PasswordFileTest, UnusableContent_IsRefusedAndNotShown) {
  EXPECT_EQ(problem(holding("")), "the file is empty");
  EXPECT_EQ(problem(holding("\n")), "the file is empty");
  EXPECT_EQ(problem(holding("hidden\nword\n")), "more than one line, where a password was expected");
  EXPECT_EQ(problem(holding("hidden\n\n")), "more than one line, where a password was expected");
  EXPECT_EQ(problem(holding(std::string(5000, 'x'))), "a password of more than 4096 bytes");
  EXPECT_EQ(holding(std::string(4096, 'x') + "\r\n").read().value().size(), 4096U);
}

TEST_F(PasswordFileTest, WhatIsNoFile_IsRefusedWithoutBlocking) {
  const std::string irregular = "not a regular file, which each login could read again";
  EXPECT_EQ(problem({.parameter = "password_file", .path = path_}), "No such file or directory");
  EXPECT_EQ(problem({.parameter = "password_file", .path = directory_.path()}), irregular);
  ASSERT_EQ(::mkfifo(path_.c_str(), 0600), 0);
  EXPECT_EQ(problem({.parameter = "password_file", .path = path_}), irregular);
}

TEST_F(PasswordFileTest, OnceAPasswordWasAccepted_ARefusedOneIsTemporary) {
  const PasswordFile file = holding("secret");
  const PasswordFile copy = file;
  EXPECT_EQ(login_failed(copy, {errc::access_denied, "wrong"}).code, errc::access_denied);
  login_accepted(file);
  EXPECT_EQ(login_failed(copy, {errc::access_denied, "wrong"}).code, errc::unavailable);
  EXPECT_EQ(login_failed(copy, {errc::protocol, "odd"}).code, errc::protocol);
}

// --- Files of certificates that change while a client lives; network/tls_test.cpp has the connections
// -----------------

class RenewedFilesTest : public testing::Test {
 protected:
  // A connection begins; what the client is warned of.
  [[nodiscard]] std::vector<std::string> warnings() {
    EXPECT_NE(context_->filter("localhost"), nullptr);
    return std::exchange(warnings_, {});
  }
  static void write(const std::string& path, const std::string& content) { std::ofstream(path) << content; }

  test::ThrowawayCertificate files_;
  std::vector<std::string> warnings_;
  std::shared_ptr<const TlsContext> context_ = make_tls_context(
      {.ca_file = files_.authority(), .cert_file = files_.certificate(), .key_file = files_.key(), .protocol = {}},
      [this](const Failure& why) { warnings_.push_back(why.detail); });
};

TEST_F(RenewedFilesTest, HalfWrittenFiles_LeaveTheEarlierInUse) {
  EXPECT_TRUE(warnings().empty());
  const std::string earlier = files_.authority() + ".earlier";
  std::filesystem::rename(files_.authority(), earlier);
  std::filesystem::create_symlink(earlier, files_.authority());
  EXPECT_TRUE(warnings().empty());
  std::filesystem::remove(files_.authority());
  write(files_.authority(), "-----BEGIN CERTIFICATE-----\nMIIB");
  const auto said = warnings();
  ASSERT_EQ(said.size(), 1U);
  EXPECT_TRUE(said.front().starts_with("tls_ca: \"" + files_.authority() + "\": ")) << said.front();
  EXPECT_NE(said.front().find("the files that were read before remain in use"), std::string::npos) << said.front();
  EXPECT_TRUE(warnings().empty()) << "the same reason";
  std::filesystem::remove(files_.authority());
  EXPECT_EQ(warnings().size(), 1U) << "another reason";
  std::filesystem::create_symlink(earlier, files_.authority());
  EXPECT_TRUE(warnings().empty());
  std::filesystem::remove(files_.authority());
  EXPECT_EQ(warnings().size(), 1U) << "the same reason, but it was good meanwhile";
}

TEST_F(RenewedFilesTest, CertificateWithoutItsKey_WaitsForTheKey) {
  const test::ThrowawayCertificate next;
  const auto replace = [](const std::string& from, const std::string& to) {
    std::filesystem::copy_file(from, to, std::filesystem::copy_options::overwrite_existing);
  };
  replace(next.certificate(), files_.certificate());
  const auto said = warnings();
  ASSERT_EQ(said.size(), 1U);
  EXPECT_TRUE(said.front().starts_with("tls_key: \"" + files_.key() + "\": ")) << said.front();
  replace(next.key(), files_.key());
  EXPECT_TRUE(warnings().empty());
}

// A shell's <(command), which has its content only once.
TEST_F(RenewedFilesTest, Pipe_IsNotReadAgain) {
  std::array<int, 2> pipe{};
  ASSERT_EQ(::pipe2(pipe.data(), O_CLOEXEC), 0);
  const util::UniqueFd reading(pipe[0]);
  {
    const util::UniqueFd writing(pipe[1]);
    std::ostringstream content;
    content << std::ifstream(files_.authority()).rdbuf();
    ASSERT_GT(::write(writing.get(), content.str().data(), content.str().size()), 0);
  }
  context_ = make_tls_context(
      {.ca_file = "/dev/fd/" + std::to_string(reading.get()), .cert_file = {}, .key_file = {}, .protocol = {}},
      [this](const Failure& why) { warnings_.push_back(why.detail); });
  const auto failing = context_->filter("localhost");
  std::string plain;
  (void)failing->decrypt("HTTP/1.1 400 Bad Request\r\n", plain);
  ASSERT_FALSE(failing->handshake());
  ASSERT_TRUE(failing->failure().code);
  EXPECT_TRUE(warnings().empty());
}

}  // namespace
}  // namespace dlock::common
