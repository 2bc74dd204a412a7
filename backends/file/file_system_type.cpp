#include "backends/file/file_system_type.hpp"

#include <algorithm>
#include <span>
#include <utility>

namespace dlock::file {

namespace {

using Known = std::pair<std::uint32_t, std::string_view>;

// From statfs(2), the kernel's include/uapi/linux/magic.h, and the file systems' own sources. sshfs, glusterfs, s3fs
// and virtiofs report fuse.
constexpr Known shared[] = {
    {0x00006969, "nfs"},      {0x0000517b, "smb"},    {0xff534d42, "cifs"},  {0xfe534d42, "smb2"},
    {0x01021997, "9p"},       {0x5346414f, "afs"},    {0x6b414653, "afs"},   {0x73757245, "coda"},
    {0x00c36400, "ceph"},     {0x0bd00bd0, "lustre"}, {0x47504653, "gpfs"},  {0x65735546, "fuse"},
    {0x7461636f, "ocfs2"},    {0x01161970, "gfs2"},   {0x0000564c, "ncp"},   {0x786f4256, "vboxsf"},
    {0xbacbacbc, "vmhgfs"},   {0x7c7c6673, "prl_fs"}, {0xaad7aaea, "panfs"}, {0x19830326, "beegfs"},
    {0x20030528, "orangefs"}, {0x61636673, "acfs"},
};
constexpr Known local[] = {
    {0x0000ef53, "ext4"},      {0x01021994, "tmpfs"},    {0x58465342, "xfs"},      {0x9123683e, "btrfs"},
    {0x794c7630, "overlayfs"}, {0x2fc12fc1, "zfs"},      {0xf2f52010, "f2fs"},     {0xca451a4e, "bcachefs"},
    {0x858458f6, "ramfs"},     {0x52654973, "reiserfs"}, {0x3153464a, "jfs"},      {0x00003434, "nilfs2"},
    {0x00004d44, "vfat"},      {0x2011bab0, "exfat"},    {0x0000f15f, "ecryptfs"},
};

}  // namespace

FileSystemType file_system_type(std::uint32_t magic) noexcept {
  for (const LockTrust trust : {LockTrust::shared, LockTrust::local}) {
    const std::span<const Known> known = trust == LockTrust::shared ? std::span<const Known>(shared) : local;
    const auto found = std::ranges::find(known, magic, &Known::first);
    if (found != known.end()) return {found->second, trust};
  }
  return {"unknown", LockTrust::unknown};
}

}  // namespace dlock::file
