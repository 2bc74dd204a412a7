#include "cli/help.hpp"

#include <string_view>

namespace dlock::cli {

namespace {

constexpr const char* exit_table =
    "Exit status:\n"
    "  0..125   the command's own (run, elect), or 0 for success; 1 if doctor found an error,\n"
    "           bench --compare a figure that got worse, torture a broken promise, leader\n"
    "           no leader, or status --exit-code a lock that is held\n"
    "  64       the command line, a name, a URL or an option is wrong\n"
    "  69       the lock service could not be reached or did not answer\n"
    "  70       the lock service sent an invalid answer, or dlock failed\n"
    "  71       the operating system refused something that dlock needs\n"
    "  74       standard output could not be written\n"
    "  75       another client holds the lock (--try), or a name is in use (forget)\n"
    "  76       another client held the lock for the whole --wait\n"
    "  77       the lock service denied access\n"
    "  78       this backend cannot do that\n"
    "  79       the lock was lost while it was in use, or the leadership (elect --once)\n"
    "  126      the command was found but cannot be run\n"
    "  127      the command was not found\n"
    "  128+N    signal N ended the command, or the wait for the lock\n";

}  // namespace

std::string main_footer() {
  return std::string(
             "Examples:\n"
             "  dlock run nightly-report -- ./report.sh           run it when no other client does\n"
             "  dlock run --try nightly-report -- ./report.sh     run it now or not at all\n"
             "  dlock run --url redis://db1 --wait 30s deploy -- make deploy\n"
             "  dlock run --shared prices -- ./read-prices        together with other readers\n"
             "  dlock elect --value \"$(hostname)\" scheduler -- ./scheduler\n"
             "  dlock status nightly-report\n"
             "  dlock doctor\n"
             "\n"
             "Service: --url, otherwise DLOCK_URL, otherwise file:// in a directory of this user on this machine.\n"
             "TIME is a number with a unit: 250ms, 1.5s, 2m, 12h, 1d; 0; forever.\n"
             "\n") +
         exit_table;
}

std::string run_footer() {
  return std::string(
             "Examples:\n"
             "  dlock run nightly-report -- ./report.sh\n"
             "  dlock run --try --hold-at-least 5m nightly-report -- ./report.sh     from cron, on every host\n"
             "  dlock run --wait 30s deploy -- sh -c 'make && make deploy'\n"
             "  DLOCK_URL=redis://db1 dlock run orders/42 -- sh -c './import --fence \"$DLOCK_TOKEN\"'\n"
             "  dlock run --exclusive prices -- ./update-prices                      alone; readers use --shared\n"
             "  dlock run --permits 4 uploads -- ./upload                            four at the same time\n"
             "  dlock run accounts/1 accounts/2 -- ./transfer                        both locks, or none\n"
             "  dlock run --metrics /var/lib/prometheus/node-exporter/backup.prom backup -- ./backup.sh\n"
             "  dlock run --json result.json job -- ./job; jq .result result.json    ran, conflict, lost, ...\n"
             "\n"
             "The command gets DLOCK_NAME, DLOCK_TOKEN (the fencing token), DLOCK_KIND and DLOCK_URL (without "
             "password).\n"
             "DLOCK_NAMES and DLOCK_TOKENS have all names and tokens, one per line; with several locks, only these are "
             "set.\n"
             "dlock passes INT, TERM, HUP, QUIT, USR1 and USR2 on to the command's process group, TERM to all its\n"
             "descendants. When dlock dies, when the lock is lost, and when the command has ended, all processes\n"
             "that the command has started are ended, including daemons.\n"
             "\n") +
         exit_table;
}

std::string hold_footer() {
  return "Prints the fencing token when it has the lock, and holds it until INT, TERM, HUP or QUIT. With several "
         "locks,\n"
         "prints one token per line, in the order of the names.\n"
         "\n"
         "Examples:\n"
         "  dlock hold maintenance\n"
         "  dlock hold --try --json maintenance\n"
         "  dlock hold --parent $$ maintenance &     in a script: ends with the script\n"
         "  dlock hold --shared prices\n";
}

std::string elect_footer() {
  return std::string(
             "Waits until this candidate leads, runs the command, and resigns when it has ended. If it loses the "
             "leadership,\n"
             "it ends the command first, as \"dlock run\" does. Then it campaigns again, at most once per second, "
             "until "
             "INT,\n"
             "TERM or QUIT, which it passes on to the command, or until the command cannot be run. --wait, --try and\n"
             "--lease apply to each campaign.\n"
             "\n"
             "Examples:\n"
             "  dlock elect --value \"$(hostname):8080\" scheduler -- ./scheduler\n"
             "  dlock elect --once --try scheduler -- ./scheduler\n"
             "  dlock leader scheduler\n"
             "\n"
             "The command gets the same variables as with \"dlock run\". DLOCK_TOKEN is greater than that of every "
             "earlier\n"
             "leader.\n"
             "\n") +
         exit_table;
}

std::string bench_footer() {
  return "Without --url: the embedded backends, the service of DLOCK_URL, and Redis, ZooKeeper, etcd and PostgreSQL "
         "on\n"
         "this machine, each with all its strategies. Prints a table, and writes a page for the browser. It locks "
         "only\n"
         "names of its own and removes them at the end, but it loads the service: do not measure a service that "
         "others\n"
         "depend on. After INT or TERM it reports what it has measured so far.\n"
         "\n"
         "Scenarios: latency, throughput, contention, recovery, holding, distance, mix, sharing.\n"
         "\n"
         "Examples:\n"
         "  dlock bench --quick\n"
         "  dlock bench --url redis://db1 --url postgresql://db2/app --html locks.html --json locks.json\n"
         "  dlock bench --url 'postgresql://db2/app?strategy=advisory' --scenario contention\n"
         "  dlock bench --compare before.json after.json\n";
}

std::string torture_footer() {
  return "Processes take locks and write to a resource that checks fencing tokens. Meanwhile dlock stops and kills "
         "holders\n"
         "and waiters, and disturbs the network to the service. It does not break the service itself: you may restart "
         "it,\n"
         "or fail it over, during the run. At the end a checker reads the history, which stays. It takes only locks "
         "named\n"
         "dlock-torture/SEED/... INT and TERM end it early. Exit status 1: a promise was broken, or too little "
         "happened\n"
         "to tell.\n"
         "\n"
         "Examples:\n"
         "  dlock torture --url redis://db1 --minutes 5\n"
         "  dlock torture --url zookeeper://zk1,zk2,zk3 --minutes 20 --directory zk-history\n"
         "  dlock torture --check zk-history\n";
}

std::string query_footer(const char* verb) {
  const std::string_view v = verb;
  if (v == "status")
    return "Examples:\n  dlock status nightly-report\n  dlock status --json nightly-report | jq .holder\n"
           "  dlock status --kind semaphore uploads\n";
  if (v == "leader") {
    return "Prints the leader's value and, after a tab, the leader (as host:pid:program). Without a leader, prints "
           "nothing and\n"
           "exits with 1. With --follow, an empty line means that there is no leader. If changes follow each other "
           "quickly, it\n"
           "may skip some.\n"
           "\n"
           "Examples:\n  dlock leader scheduler | cut -f 1\n"
           "  dlock leader --follow --json scheduler\n";
  }
  if (v == "list")
    return "Examples:\n  dlock list --held\n  dlock list --json | jq -r '.[].name'\n  dlock list --kind read-write\n";
  if (v == "break") {
    return "The holder gets the loss signal, and may still work for a moment.\n"
           "\n"
           "Examples:\n  dlock break --yes nightly-report\n";
  }
  if (v == "forget") {
    return "Does not forget locks that clients hold or wait for. Later tokens of a name are still greater.\n"
           "Exit status 75: a lock is in use, or was taken less than a minute ago.\n"
           "\n"
           "Examples:\n  dlock forget job-2019 job-2020\n"
           "  dlock forget --idle 30d\n";
  }
  if (v == "doctor") {
    return "Examples:\n  dlock doctor\n  dlock doctor --url redis://db1 --json\n"
           "  dlock doctor --url zookeeper://zk1:2181,zk2:2181,zk3:2181\n"
           "  dlock doctor --url etcds://etcd1,etcd2,etcd3\n";
  }
  if (v == "init") {
    return "For services that need it, such as databases with tables. Safe to repeat, also while locks are in use.\n"
           "\n"
           "Examples:\n  dlock init --url postgresql://admin@db1/app\n"
           "  dlock init --url 'postgresql://admin@db1/app?schema=locks'\n";
  }
  return "Examples:\n  dlock backends\n";
}

}  // namespace dlock::cli
