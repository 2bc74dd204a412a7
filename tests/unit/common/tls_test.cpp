// Files of certificates that change while a client lives. tests/integration/network/tls_test.cpp has the connections.
#include "backends/common/tls.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/throwaway_certificate.hpp"
#include "util/unique_fd.hpp"

namespace dlock::common {

namespace {

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
    ASSERT_EQ(::write(writing.get(), content.str().data(), content.str().size()),
              static_cast<ssize_t>(content.str().size()));
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
