// Bounds how long libgomp's threads spin while they wait. libgomp spins for milliseconds before a thread sleeps, so
// that two programs that share cores slow each other out of proportion. The bound is the environment variable
// GOMP_SPINCOUNT, which libgomp reads in its constructor, before main: a function of .preinit_array runs ahead of every
// library's constructor and executes the program once more with the variable set. At that point LibTorch is mapped but
// nothing of it has run.
#if defined(__x86_64__)
#include <cpuid.h>
#endif
#include <elf.h>
#include <sys/auxv.h>
#include <unistd.h>

#include <cstddef>
#include <cstring>

namespace {

// Each maker of processors has its own count. On a Xeon of family 6 (scripts/bench/side_by_side.py,
// docs/measurements/side_by_side_*) 1000 makes one program alone 55 % slower and 3000 3 to 17 %, and with 5000 two
// programs take 3.3 times as long as one. On an EPYC of family 26, measured by others, 300 makes one program alone a
// quarter slower and 1000 0 to 10 %, and with 3000 two take 2.8 to 3.4 times as long.
constexpr char kSpinCount[] = "GOMP_SPINCOUNT=3000";
constexpr char kSpinCountAmd[] = "GOMP_SPINCOUNT=1000";

constexpr std::size_t kMostVariables = 4096;
constexpr std::size_t kLongestPath = 4096;

// Without sanitizers, whose runtime has not started yet.
__attribute__((no_sanitize("address"), no_sanitize("undefined"), no_sanitize("thread"))) bool sets(const char* entry,
                                                                                                   const char* name) {
  const std::size_t length = std::strlen(name);
  return std::strncmp(entry, name, length) == 0 && entry[length] == '=';
}

__attribute__((no_sanitize("address"), no_sanitize("undefined"), no_sanitize("thread"))) bool is_amd() {
#if defined(__x86_64__)
  unsigned most = 0;
  unsigned vendor[3] = {};  // "Auth" "enti" "cAMD"
  return __get_cpuid(0, &most, &vendor[0], &vendor[2], &vendor[1]) != 0 && vendor[0] == 0x68747541 &&
         vendor[1] == 0x69746e65 && vendor[2] == 0x444d4163;
#else
  return false;
#endif
}

// Replaces the process by itself with the count in its environment; arguments, open files, signals and process id
// stay. A value that the user set wins, and ends the chain: the second time the variable is there. Nothing of the C
// library that needs its constructor may be used here. Where the program cannot be executed again it goes on as it is,
// which changes how long waiting threads spin and nothing else.
__attribute__((no_sanitize("address"), no_sanitize("undefined"), no_sanitize("thread"))) void bound_spin(
    int /*argc*/, char** argv, char** environment) {
  std::size_t count = 0;
  for (; environment[count] != nullptr; ++count) {
    if (sets(environment[count], "GOMP_SPINCOUNT") || sets(environment[count], "OMP_WAIT_POLICY")) return;
  }
  // Started as an argument of the dynamic loader, /proc/self/exe is the loader; started with other rights
  // (set-user-id), the second start would not have them for certain.
  if (::getauxval(AT_BASE) == 0 || ::getauxval(AT_SECURE) != 0) return;
  if (count + 2 > kMostVariables) return;
  char* extended[kMostVariables];
  std::memcpy(extended, environment, count * sizeof(char*));
  extended[count] = const_cast<char*>(is_amd() ? kSpinCountAmd : kSpinCount);
  extended[count + 1] = nullptr;
  // By its own path where it still has one, so that ps shows the program's name; a deleted file is reached only the
  // other way.
  char path[kLongestPath];
  const ssize_t length = ::readlink("/proc/self/exe", path, sizeof(path) - 1);
  if (length > 0) {
    path[length] = '\0';
    ::execve(path, argv, extended);
  }
  ::execve("/proc/self/exe", argv, extended);
}

using Preinit = void (*)(int, char**, char**);
__attribute__((section(".preinit_array"), used)) const Preinit kBoundSpin = bound_spin;

}  // namespace
