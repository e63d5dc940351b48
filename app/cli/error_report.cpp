#include "app/cli/error_report.h"

#include <c10/util/Exception.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <new>
#include <optional>
#include <string>

#include "app/cli/caller.h"
#include "model/base/error_type.h"
#include "model/core/hardware_fault.h"
#include "model/core/out_of_memory.h"

namespace sdtune::app {
namespace {

bool debugging() {
  const char* value = std::getenv("SDTUNE_DEBUG");
  return value != nullptr && std::strcmp(value, "1") == 0;
}

std::string first_line(const std::string& text) {
  return text.substr(0, text.find('\n'));
}

// Such as a terminal, which answers EIO once it is gone; a disk that does is broken.
bool is_device(int file) {
  struct stat status = {};
  return fstat(file, &status) == 0 && S_ISCHR(status.st_mode);
}

struct Report {
  ExitCode code = ExitCode::kBug;
  std::vector<Problem> problems;
  std::string type = "Error";  // the class of the Python module that says the same
};

constexpr const char* kMemoryHint =
    "sample: a smaller --batch or size; train: a smaller --micro-batch or --resolution, or --gradient-checkpointing";

// A restart mends it, as that of a lost rank.
Report of_hardware(const Problem& fault) {
  return {ExitCode::kPeerLost, {fault}, "PeerLostError"};
}

Report describe_torch_error(const c10::Error& error) {
  const std::string text = debugging() ? error.what() : first_line(error.what_without_backtrace());
  if (model::is_out_of_memory(error))
    return {ExitCode::kOutOfMemory, {{"memory", text, kMemoryHint}}, "OutOfMemoryError"};
  if (const std::optional<Problem> fault = model::hardware_fault(error)) return of_hardware(*fault);
  if (dynamic_cast<const c10::DistError*>(&error) != nullptr) {
    return {ExitCode::kPeerLost, {{"ranks", text, ""}}, "PeerLostError"};
  }
  return {ExitCode::kBug, {{"internal error", text, "SDTUNE_DEBUG=1 shows where"}}};
}

Report describe(const std::exception_ptr& exception) {
  try {
    std::rethrow_exception(exception);
  } catch (const Error& error) {
    return {error.code(), error.problems(), error_type(error)};
  } catch (const c10::Error& error) {
    return describe_torch_error(error);
  } catch (const std::bad_alloc& error) {
    return {ExitCode::kOutOfMemory, {{"memory", model::words_of(error), kMemoryHint}}, "OutOfMemoryError"};
  } catch (const std::filesystem::filesystem_error& error) {
    return {ExitCode::kStorage, {{error.path1().string(), error.code().message(), ""}}, "StorageError"};
  } catch (const std::exception& error) {
    if (const std::optional<Problem> fault = model::hardware_fault(error)) return of_hardware(*fault);
    return {ExitCode::kBug, {{"internal error", debugging() ? error.what() : first_line(error.what()), ""}}};
  } catch (...) {
    return {ExitCode::kBug, {{"internal error", "unknown exception", ""}}};
  }
}

}  // namespace

std::vector<Problem> problems_of(const std::exception_ptr& exception) {
  return describe(exception).problems;
}

void print_problems(const std::vector<Problem>& problems) {
  for (const Problem& problem : problems) std::fprintf(stderr, "sdtune: error: %s\n", problem.line().c_str());
}

int report_exception(const std::exception_ptr& exception) noexcept {
  const Report report = describe(exception);
  try {
    if (tell_caller(report.type, report.code, report.problems)) return static_cast<int>(report.code);
  } catch (const std::bad_alloc&) {  // the lines need less memory
  }
  print_problems(report.problems);
  return static_cast<int>(report.code);
}

void finish_output() {
  errno = 0;
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return;
  const int error = errno;
  if (error == EPIPE || error == 0 || (error == EIO && is_device(STDOUT_FILENO))) return;
  throw StorageError("stdout", std::string("cannot be written: ") + std::strerror(error));
}

}  // namespace sdtune::app
