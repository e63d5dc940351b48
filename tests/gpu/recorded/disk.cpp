// The recorded GPU's run is never saved, so its plan must not depend on the room left on this machine's disk: every
// file system that the program asks about answers with a tebibyte free. Takes the place of the C library's function,
// which std::filesystem::space calls.
#include <sys/statvfs.h>

extern "C" int statvfs(const char* /*path*/, struct statvfs* answer) noexcept {
  constexpr unsigned long kBlock = 4096;
  constexpr unsigned long kBlocks = (1UL << 40) / kBlock;
  *answer = {};
  answer->f_bsize = kBlock;
  answer->f_frsize = kBlock;
  answer->f_blocks = kBlocks;
  answer->f_bfree = kBlocks;
  answer->f_bavail = kBlocks;
  return 0;
}
