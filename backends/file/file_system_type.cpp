#include "backends/file/file_system_type.hpp"

#include <algorithm>
#include <array>

namespace dlock::file {

namespace {

struct Entry {
  std::uint32_t magic;
  FileSystemType type;
};

// From statfs(2), the kernel's include/uapi/linux/magic.h, and the file systems' own sources.
constexpr std::array known_types = {
    Entry{0x00006969, {"nfs", LockTrust::shared}},
    Entry{0x0000517b, {"smb", LockTrust::shared}},
    Entry{0xff534d42, {"cifs", LockTrust::shared}},
    Entry{0xfe534d42, {"smb2", LockTrust::shared}},
    Entry{0x01021997, {"9p", LockTrust::shared}},
    Entry{0x5346414f, {"afs", LockTrust::shared}},
    Entry{0x6b414653, {"afs", LockTrust::shared}},
    Entry{0x73757245, {"coda", LockTrust::shared}},
    Entry{0x00c36400, {"ceph", LockTrust::shared}},
    Entry{0x0bd00bd0, {"lustre", LockTrust::shared}},
    Entry{0x47504653, {"gpfs", LockTrust::shared}},
    Entry{0x65735546, {"fuse", LockTrust::shared}},  // sshfs, glusterfs, s3fs, virtiofs: all report this one
    Entry{0x7461636f, {"ocfs2", LockTrust::shared}},
    Entry{0x01161970, {"gfs2", LockTrust::shared}},
    Entry{0x0000564c, {"ncp", LockTrust::shared}},
    Entry{0x786f4256, {"vboxsf", LockTrust::shared}},
    Entry{0xbacbacbc, {"vmhgfs", LockTrust::shared}},
    Entry{0x7c7c6673, {"prl_fs", LockTrust::shared}},
    Entry{0xaad7aaea, {"panfs", LockTrust::shared}},
    Entry{0x19830326, {"beegfs", LockTrust::shared}},
    Entry{0x20030528, {"orangefs", LockTrust::shared}},
    Entry{0x61636673, {"acfs", LockTrust::shared}},
    Entry{0x0000ef53, {"ext4", LockTrust::local}},
    Entry{0x01021994, {"tmpfs", LockTrust::local}},
    Entry{0x58465342, {"xfs", LockTrust::local}},
    Entry{0x9123683e, {"btrfs", LockTrust::local}},
    Entry{0x794c7630, {"overlayfs", LockTrust::local}},
    Entry{0x2fc12fc1, {"zfs", LockTrust::local}},
    Entry{0xf2f52010, {"f2fs", LockTrust::local}},
    Entry{0xca451a4e, {"bcachefs", LockTrust::local}},
    Entry{0x858458f6, {"ramfs", LockTrust::local}},
    Entry{0x52654973, {"reiserfs", LockTrust::local}},
    Entry{0x3153464a, {"jfs", LockTrust::local}},
    Entry{0x00003434, {"nilfs2", LockTrust::local}},
    Entry{0x00004d44, {"vfat", LockTrust::local}},
    Entry{0x2011bab0, {"exfat", LockTrust::local}},
    Entry{0x0000f15f, {"ecryptfs", LockTrust::local}},
};

}  // namespace

FileSystemType file_system_type(std::uint32_t magic) noexcept {
  const auto* const found = std::find_if(known_types.begin(), known_types.end(),
                                         [magic](const Entry& entry) { return entry.magic == magic; });
  return found != known_types.end() ? found->type : FileSystemType{"unknown", LockTrust::unknown};
}

}  // namespace dlock::file
