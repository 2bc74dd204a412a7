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

TEST_F(Usage, AMissingCommandIsRefused) {
  expect_refused({}, "there is no command");
  expect_refused({"frobnicate"}, "\"frobnicate\" is not a command; these are: run, hold, ");
  expect_refused({"run", "job", "--"}, "no command after \"--\"");
}

TEST_F(Usage, AWordThatIsNoCommandIsNamedBesideTheOneThatWasMeant) {
  expect_refused({"rn", "x"}, "\"rn\" is not a command; did you mean \"run\"?\n");
  expect_refused({"rn", "x", "--", "echo", "ran"}, "\"rn\" is not a command; did you mean \"run\"?\n");
  expect_refused({"lsit"}, "did you mean \"list\"?\n");
  expect_refused({"help", "rn"}, "\"rn\" is not a command; did you mean \"run\"?\n");
  expect_refused({"hlep"}, "did you mean \"help\"?\n");
}

TEST_F(Usage, AnOptionInFrontOfTheCommandIsSentBehindIt) {
  expect_refused({"--url", url(), "list"}, "--url: options go behind the command: dlock list --url ...\n");
  expect_refused({"--url=" + url(), "run", "x", "--", "echo", "ran"}, "behind the command: dlock run --url ...\n");
  expect_refused({"-q"}, "-q: options go behind the command: dlock COMMAND -q ...\n");
  expect_refused({"--frobnicate", "list"}, "--frobnicate: no such option\n");
  expect_refused({"--"}, "--: no such option\n");
}

TEST_F(Usage, AnOptionThatIsAlmostRightIsAnsweredWithTheRightOne) {
  expect_refused({"status", "--jsn", "x"}, "--jsn: no such option; did you mean --json?\n");
  expect_refused({"run", "--wiat=5s", "x", "--", "echo", "ran"}, "--wiat: no such option; did you mean --wait?\n");
}

TEST_F(Usage, RunWithoutTheSeparatorIsRefused) {
  expect_refused({"run", "job", "echo", "ran"}, "\"--\" is missing");
  expect_refused({"run", "job"}, "\"--\" and a command are missing");
}

TEST_F(Usage, AMissingNameIsRefused) {
  expect_refused({"run", "--", "echo", "ran"}, "NAME is required; see dlock run --help\n");
  expect_refused({"status"}, "NAME is required");
  expect_refused({"hold"}, "NAME is required");
  expect_refused({"break", "--yes"}, "NAME is required");
}

TEST_F(Usage, TooManyArgumentsAreRefused) {
  expect_refused({"status", "job", "job2"}, "more arguments than expected; see dlock status --help\n");
  expect_refused({"run", "job", "--", "job2", "--", "echo"}, "two lock names");
}

TEST_F(Usage, AnUnknownOptionIsNamedWithoutItsValue) {
  expect_refused({"run", "--password=hunter2", "job", "--", "echo", "ran"}, "--password: no such option\n");
  expect_refused({"run", "-phunter2", "job", "--", "echo", "ran"}, "-p: no such option\n");
}

TEST_F(Usage, ContradictoryOptionsAreRefused) {
  expect_refused({"run", "--try", "--wait", "1s", "job", "--", "echo", "ran"}, "--wait and --try exclude each other");
  expect_refused({"list", "--json", "--names"}, "--names and --json exclude each other");
}

TEST_F(Usage, OneKindOfLockIsNamedAtMost) {
  expect_refused({"run", "--shared", "--permits", "2", "job", "--", "echo", "ran"}, "--shared and --permits exclude");
  expect_refused({"run", "--exclusive", "--permits=2", "job", "--", "echo"}, "--exclusive and --permits exclude");
  expect_refused({"hold", "--url", url(), "--shared", "--exclusive", "job"}, "--shared and --exclusive exclude");
  expect_refused({"status", "--shared", "job"}, "--shared: no such option");
  expect_refused({"run", "--kind", "lock", "job", "--", "echo"}, "--kind: no such option");
}

TEST_F(Usage, SeveralNamesArePlainLocksEachNamedOnce) {
  expect_refused({"run", "--shared", "a", "b", "--", "echo", "ran"}, "--shared takes one name, not 2");
  expect_refused({"hold", "--exclusive", "a", "b", "c"}, "--exclusive takes one name, not 3");
  expect_refused({"hold", "--permits", "2", "a", "b"}, "--permits takes one name, not 2");
  expect_refused({"run", "--url", url(), "b", "a", "b", "--", "echo", "ran"}, "\"b\" is named twice");
  expect_refused({"hold", "--url", url(), "a", "a"}, "\"a\" is named twice");
  expect_refused({"hold", "--url", url(), "good", "bad\nname"}, "name");
  EXPECT_EQ(run(dlock("list")).out, "") << "something was left behind";
}

TEST_F(Usage, OfElectionsIsRefusedAsElsewhere) {
  expect_refused({"elect", "--url", url(), "post"}, "\"--\" and a command are missing: dlock elect");
  expect_refused({"elect", "--url", url(), "post", "--"}, "no command after \"--\"");
  expect_refused({"elect", "--url", url(), "--", "echo", "ran"}, "NAME is required");
  expect_refused({"elect", "--url", url(), "a", "b", "--", "echo", "ran"}, "more arguments");
  expect_refused({"elect", "--url", url(), "--permits", "2", "post", "--", "echo"}, "--permits: no such option");
  expect_refused({"elect", "--url", url(), "--try", "--wait", "1s", "post", "--", "echo"},
                 "--wait and --try exclude each other");
  expect_refused({"leader", "--url", url()}, "NAME is required");
  expect_refused({"leader", "--url", url(), "a", "b"}, "more arguments");
}

TEST_F(Usage, AValueThatIsTooLongOrNotTextIsRefused) {
  for (const std::string& value : {std::string(1025, 'x'), std::string("two\nlines"), std::string("\xFF")}) {
    expect_refused({"elect", "--url", "memory://", "--quiet", "--value", value, "post", "--", "echo", "ran"}, "value");
  }
}

TEST_F(Usage, AWrongNumberOfPermitsIsRefused) {
  for (const char* number : {"0", "-1", "2147483648", "99999999999999999999", "1.5", "two", "0x1", " 1"}) {
    expect_refused({"run", "--url", url(), std::string("--permits=") + number, "job", "--", "echo", "ran"},
                   std::string("--permits: must be 1 to 2147483647, not \"") + number + "\"\n");
  }
  expect_refused({"hold", "--permits", "-1", "job"}, "--permits: ");
  expect_refused({"hold", "--permits=", "job"}, "--permits: the value is empty");
}

TEST_F(Usage, AKindThatThereIsNotIsRefused) {
  for (const std::string verb : {"status", "break", "forget"}) {
    expect_refused({verb, "--kind", "mutex", "job"},
                   "--kind: must be one of lock, read-write, semaphore, election, not \"mutex\"\n");
  }
  expect_refused({"list", "--kind", "read-write lock"}, "--kind: must be");
}

TEST_F(Usage, AnOptionWithoutItsValueOrGivenTwiceIsRefused) {
  expect_refused({"hold", "job", "--wait"}, "--wait: the value is missing\n");
  expect_refused({"hold", "--wait", "1s", "--wait", "2s", "job"}, "--wait: may be given only once\n");
}

TEST_F(Usage, HelpOfWhatThereIsNotIsRefused) {
  expect_refused({"help", "frobnicate"}, "\"frobnicate\" is not a command; these are: run, ");
}

TEST_F(Usage, WhatIsToBeForgottenIsSaidInOneWay) {
  expect_refused({"forget", "--url", url()}, "either names or --idle");
  expect_refused({"forget", "--url", url(), "job", "--idle", "30d"}, "either names or --idle");
  expect_refused({"forget", "--url", url(), "--idle", "30"}, "--idle: \"30\" is not a time");
  expect_refused({"forget", "--url", url(), "--idle", "59s"}, "one minute");
  expect_refused({"forget", "--url", url(), "good", "bad\nname"}, "name");
}

TEST_F(Usage, AWrongTimeIsRefusedNamingTheOption) {
  for (const char* option : {"--wait", "--connect-wait", "--lease", "--hold-at-least", "--kill-after"}) {
    for (const char* value : {"5", "5 sec", "-5s", "nan", "1e400s", "s", "9223372036854775807ms9", "99999999999999d"}) {
      expect_refused({"run", std::string(option) + "=" + value, "job", "--", "echo", "ran"},
                     std::string(option) + ": ");
    }
    expect_refused({"run", std::string(option) + "=", "job", "--", "echo", "ran"}, std::string(option) + ": ");
  }
}

TEST_F(Usage, AWrongValueIsNamedBesideTheRightOnes) {
  expect_refused({"bench", "--scenario", "foo"}, "--scenario: must be one of latency, throughput, ");
  expect_refused({"bench", "--rate", "x"}, "--rate: must be a number greater than 0, not \"x\"\n");
  expect_refused({"bench", "--compare", "a"}, "--compare: takes two values\n");
  expect_refused({"bench", "--compare", "a", "b", "c"}, "--compare: takes two values\n");
  expect_refused({"torture", "--seed", "x"}, "--seed: must be 0 to 9223372036854775807, not \"x\"\n");
  expect_refused({"torture", "--workers", "1"}, "--workers: must be 2 to 64, not \"1\"\n");
  expect_refused({"status", "--kind", "mutex", "x"},
                 "must be one of lock, read-write, semaphore, election, not \"mutex\"");
}

TEST_F(Usage, NoTimeAtAllToReachTheServiceIsRefused) {
  expect_refused({"run", "--url", url(), "--connect-wait", "0", "job", "--", "echo", "ran"}, "--connect-wait: ");
  expect_refused({"hold", "--url", url(), "--connect-wait", "0s", "job"}, "--connect-wait: ");
  expect_refused({"status", "--url", url(), "--connect-wait", "1s", "job"}, "--connect-wait: no such option");
}

TEST_F(Usage, ALeaseOfZeroIsRefused) {
  expect_refused({"run", "--url", url(), "--lease", "0", "job", "--", "echo", "ran"}, "lease");
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

TEST_F(Usage, AWrongUrlIsRefused) {
  expect_refused({"run", "--url", "nonsense", "job", "--", "echo", "ran"}, "URL");
  expect_refused({"run", "--url", "gopher://x", "job", "--", "echo", "ran"}, "gopher");
  expect_refused({"run", "--url", url() + "?colour=blue", "job", "--", "echo", "ran"}, "colour");
  expect_refused({"run", "--url", url() + "?lease=1s&lease=2s", "job", "--", "echo", "ran"}, "lease");
  expect_refused({"run", "--url", "file:///%zz", "job", "--", "echo", "ran"}, "URL");
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
