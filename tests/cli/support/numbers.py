# numbers.py start VARIABLES COMMAND...: becomes the command, and gives it the numbers by which a service manager says which
# process it started; VARIABLES, "A=1 B=2", replace some of them.
# numbers.py compare: prints the names of those that are not this process's.
import os
import sys


def numbers():
    fd = os.pidfd_open(os.getpid())
    own = dict.fromkeys(["LISTEN_PID", "WATCHDOG_PID", "SYSTEMD_EXEC_PID"], str(os.getpid()))
    own["LISTEN_PIDFDID"] = str(os.fstat(fd).st_ino)
    os.close(fd)
    return own


if sys.argv[1] == "start":
    os.environ.update(numbers(), **dict(each.split("=") for each in sys.argv[2].split()))
    os.execvp(sys.argv[3], sys.argv[3:])
print(*[name for name in sorted(numbers()) if os.environ[name] != numbers()[name]])
