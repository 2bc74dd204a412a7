// Bad input: refused with status 64 before anything is done, naming the part that is wrong, and without passwords.
#include <sys/stat.h>

#include <filesystem>

#include "support/cli_test.hpp"

namespace dlock::cli::test {
namespace {

class Usage : public CliTest {
 protected:
  // dlock WORDS... must fail with 64 and say `complaint`; no command may run.
  static void expect_refused(const std::vector<std::string>& words, const std::string& complaint) {
    std::vector<std::string> command{dlock_path()};
    command.insert(command.end(), words.begin(), words.end());
    const Finished result = run(command);
    EXPECT_EQ(result.status, 64) << result.err;
    EXPECT_EQ(result.out, "");
    EXPECT_THAT(result.err, testing::StartsWith("dlock: "));
    EXPECT_THAT(result.err, testing::HasSubstr(complaint));
  }
  void expect_name_refused(const std::string& name, const std::string& complaint) {
    expect_refused({"run", "--url", url(), name, "--", "echo", "ran"}, complaint);
    expect_refused({"hold", "--url", url(), name}, complaint);
    expect_refused({"status", "--url", url(), name}, complaint);
    expect_refused({"break", "--yes", "--url", url(), name}, complaint);
    expect_refused({"forget", "--url", url(), name}, complaint);
  }
};

TEST_F(Usage, AValueThatIsTooLongOrNotTextIsRefused) {
  for (const std::string& value : {std::string(1025, 'x'), std::string("two\nlines"), std::string("\xFF")}) {
    expect_refused({"elect", "--url", "memory://", "--quiet", "--value", value, "post", "--", "echo", "ran"}, "value");
  }
}

TEST_F(Usage, AWrongNameIsRefused) {
  expect_name_refused("", "name");
  expect_name_refused(std::string(513, 'x'), "name");
  expect_name_refused("line\nbreak", "name");
  expect_name_refused("\x7f", "name");
  expect_name_refused("\xff\xfe", "name");
  expect_name_refused("\xc0\xaf", "name");      // overlong
  expect_name_refused("\xed\xa0\x80", "name");  // a surrogate
}

TEST_F(Usage, AnyOtherNameIsData) {
  for (const char* name : {"/", ".", "..", "../../etc/passwd", "a/", " ", "%", "*", "?", "'\"", "; rm -rf /", "$1",
                           "{}", "--", "-x", "--help", "--try", "\xC3\xA4\xF0\x9F\x94\x92"}) {
    const Finished result =
        run({dlock_path(), "run", "--url", url(), "--", name, "--", probe_path(), "arguments", "ran"});
    EXPECT_EQ(result.out, "ran\n") << name << result.err;
    EXPECT_THAT(run({dlock_path(), "status", "--url", url(), "--", name}).out, testing::HasSubstr("last token"))
        << name;
  }
}

TEST_F(Usage, ANameOf512BytesIsAccepted) {
  EXPECT_EQ(run(dlock("run", {std::string(512, 'x'), "--", "true"})).status, 0);
}

TEST_F(Usage, APasswordIsNeverPrinted) {
  const std::string secret = "hunter2";
  const std::vector<std::string> urls{
      "redis://user:hunter2@localhost:0/x",
      "gopher://user:hunter2@h",
      "memory://:hunter2@h?x=1",
      "file://u:hunter2@/x/\x01",
      "postgresql://u:hunter2@h:99999/d",
      "zookeeper://h/?password=hunter2",
      "etcd://u:hunter2@h/x",
      "://hunter2@x",
      "memory://?auth=digest:u:hunter2",
      "file:///x?sslpassword=hunter2&a=%zz",
      "redis://user:hunter2@[::1/",
  };
  for (const std::string& url : urls) {
    for (const std::vector<std::string>& words : std::vector<std::vector<std::string>>{
             {"run", "--url", url, "job", "--", "true"},
             {"run", "--url=" + url, "--bogus", "job", "--", "true"},
             {"run", "--wait", url, "job", "--", "true"},
             {"run", url, url, "--", "true"},
             {"run", "--url", url, url},
             {"status", url, url},
             {url},
             {"doctor", "--url", url},
             {"list", "--json=" + url},
             {"run", "--url" + url + "?lease=5s", "job", "--", "true"},
             {"run", "--url" + url + "?lease=", "job", "--", "true"},
             {"run", "-u" + url, "job", "--", "true"},
         }) {
      std::vector<std::string> command{dlock_path()};
      command.insert(command.end(), words.begin(), words.end());
      const Finished result = run(command);
      EXPECT_THAT(result.out + result.err, testing::Not(testing::HasSubstr(secret))) << testing::PrintToString(words);
    }
    const Finished from_environment = run({dlock_path(), "doctor"}, {.environment = {{"DLOCK_URL", url}}});
    EXPECT_THAT(from_environment.out + from_environment.err, testing::Not(testing::HasSubstr(secret))) << url;
  }
}

class Location : public CliTest {};

TEST_F(Location, TheUrlOptionComesBeforeTheEnvironment) {
  const Process::Options options{.environment = {{"DLOCK_URL", "gopher://x"}}};
  EXPECT_EQ(run(dlock("run", {"job", "--", "true"}), options).status, 0);
  EXPECT_EQ(run({dlock_path(), "run", "job", "--", "true"}, options).status, 64);
}

TEST_F(Location, TheEnvironmentNamesTheService) {
  Process holder(run_probe({"wait"}));
  (void)holder.line();
  const Process::Options options{.environment = {{"DLOCK_URL", url()}}};
  EXPECT_EQ(run({dlock_path(), "run", "--try", "job", "--", "true"}, options).status, 75);
}

// Below an empty /run/lock, in a mount name space of its own.
class DefaultDirectory : public CliTest {
 protected:
  void SetUp() override {
    const Finished result = in_own_run_lock("1777", "id -u");
    if (result.status != 0) GTEST_SKIP() << "needs privilege: " << result.err;
  }
  // As "root" there; $0 is dlock.
  [[nodiscard]] Finished in_own_run_lock(const std::string& mode, const std::string& script) const {
    return run({"unshare", "--map-root-user", "--mount", "sh", "-c",
                "mount -t tmpfs -o mode=" + mode + " test /run/lock && " + script, dlock_path()},
               {.environment = {{"DLOCK_URL", ""}, {"XDG_RUNTIME_DIR", scratch().path()}}});
  }
};

TEST_F(DefaultDirectory, IsTheSameInALoginInCronAndInAServiceWithPrivateTmp) {
  const Finished result = in_own_run_lock("1777", R"sh(
    "$0" run job -- sh -c '
      echo "$DLOCK_URL" "$(stat -c %a /run/lock/dlock-0)"
      unset DLOCK_URL
      "$0" run --try job -- echo never; echo $?
      env -i "$0" run --try job -- echo never; echo $?
      unshare --mount sh -c "mount -t tmpfs private /var/tmp; exec \"\$0\" run --try job -- echo never" "$0"; echo $?
    ' "$0")sh");
  EXPECT_EQ(result.out, "file:///run/lock/dlock-0 700\n75\n75\n75\n") << result.err;
}

TEST_F(DefaultDirectory, HasNoSubstitute) {
  const Finished full = in_own_run_lock("1777,nr_inodes=1", "\"$0\" run job -- echo ran");
  EXPECT_EQ(full.status, 69);
  EXPECT_EQ(full.out, "");
  EXPECT_THAT(full.err, testing::HasSubstr("cannot make the default lock directory /run/lock/dlock-0: No space left "
                                           "on device; name a service with --url or DLOCK_URL"));
  EXPECT_EQ(in_own_run_lock("1777,ro", "\"$0\" run job -- echo ran").status, 77);
}

TEST_F(DefaultDirectory, IsRefusedIfOthersCanReachIt) {
  for (const auto& [made_by, fault] :
       {std::pair("mkdir -m 755", "is open to other users"), std::pair("ln -s /dev/shm", "is a symbolic link"),
        std::pair("touch", "is not a directory")}) {
    const Finished result =
        in_own_run_lock("1777", made_by + std::string(" /run/lock/dlock-0; \"$0\" run job -- echo ran"));
    EXPECT_EQ(result.status, 77);
    EXPECT_EQ(result.out, "");
    EXPECT_THAT(result.err, testing::HasSubstr(std::string("/run/lock/dlock-0 ") + fault));
  }
}

}  // namespace
}  // namespace dlock::cli::test
