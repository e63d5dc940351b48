// The file system of the run folder. Numbers of file systems: linux/magic.h and statfs(2).
#include "model/machine/folder_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace sdtune::model {
namespace {

enum class Kind { kMemory, kLayer, kNetwork, kFuse, kLocal };

struct KnownType {
  std::uint64_t number;
  const char* name;
  Kind kind;
};

constexpr std::array kTypes = {
    KnownType{0x01021994, "tmpfs", Kind::kMemory},  KnownType{0x858458f6, "ramfs", Kind::kMemory},
    KnownType{0x794c7630, "overlay", Kind::kLayer}, KnownType{0x6969, "NFS", Kind::kNetwork},
    KnownType{0xff534d42, "CIFS", Kind::kNetwork},  KnownType{0xfe534d42, "SMB", Kind::kNetwork},
    KnownType{0x00c36400, "Ceph", Kind::kNetwork},  KnownType{0x0bd00bd0, "Lustre", Kind::kNetwork},
    KnownType{0x47504653, "GPFS", Kind::kNetwork},  KnownType{0x19830326, "BeeGFS", Kind::kNetwork},
    KnownType{0x01021997, "9p", Kind::kNetwork},    KnownType{0x65735546, "FUSE", Kind::kFuse},
    KnownType{0xef53, "ext4", Kind::kLocal},        KnownType{0x58465342, "XFS", Kind::kLocal},
    KnownType{0x9123683e, "Btrfs", Kind::kLocal},   KnownType{0x2fc12fc1, "ZFS", Kind::kLocal},
    KnownType{0xf2f52010, "F2FS", Kind::kLocal}};

const char* advice_of(Kind kind) {
  switch (kind) {
    case Kind::kMemory:
      return "it is held in memory and lost when the machine stops: give another folder with --output";
    case Kind::kLayer:
      return "it is the container's own layer and lost with it: mount a volume, and give a folder there";
    case Kind::kNetwork:
      return "a network: checkpoints take longer, and a run waits for them; local disk is faster";
    case Kind::kFuse:
      return "FUSE, often an object store, which may lack an atomic rename: write to a local disk, and copy afterwards";
    case Kind::kLocal:
      return "";
  }
  return "";
}

}  // namespace

MachineCheck check_run_folder(const FolderFacts& facts) {
  const auto* const known =
      std::find_if(kTypes.begin(), kTypes.end(), [&](const KnownType& type) { return type.number == facts.type; });
  MachineCheck check{.name = "disk"};
  check.found =
      fmt::format("{} on {}, {} free", facts.folder.string(),
                  known == kTypes.end() ? fmt::format("a file system of type {:#x}", facts.type) : known->name,
                  gibibytes_text(facts.free_bytes));
  if (!facts.is_writable) {
    check.status = CheckStatus::kFail;
    check.advice = "it cannot be written by this user: give another folder with --output";
  } else if (facts.free_bytes < kGiB) {
    check.status = CheckStatus::kFail;
    check.advice = "too full for the checkpoints of any run: free some, or give another folder with --output";
  } else if (known != kTypes.end() && known->kind != Kind::kLocal) {
    check.status = CheckStatus::kWarn;
    check.advice = advice_of(known->kind);
  } else if (facts.free_bytes < 20 * kGiB) {
    check.status = CheckStatus::kWarn;
    check.advice =
        "enough for the bundled base: a checkpoint of all of Stable Diffusion 1.5 takes 11 GiB (`sdtune plan`)";
  }
  return check;
}

}  // namespace sdtune::model
