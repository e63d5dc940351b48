// What a user can mend: every error names where it is (a path, an option key, a line), what is wrong, and a way out.
#pragma once

#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace sdtune {

// The process exit codes. 1-127 must not be retried, 128 and above may be.
enum class ExitCode : int {
  kDone = 0,
  kBug = 1,
  kBadInput = 2,
  kNoCheckpoint = 3,
  kOutOfMemory = 4,
  kStorage = 5,
  kNonFinite = 6,
  kInterrupted = 130,
  kPeerLost = 138,
  kTerminated = 143,
};

// One fault: `where` is a file (with :LINE) or an option key; `what` says what is wrong, with the value got and what is
// allowed; `hint` (may be empty) says what to do.
struct Problem {
  std::string where;
  std::string what;
  std::string hint;

  // "where: what; hint", without line breaks and with control characters written out (printable.h).
  std::string line() const;
};

// Base of everything sdtune throws on purpose. Carries one or more problems, all of which are printed, a line each.
class Error : public std::runtime_error {
 public:
  Error(ExitCode code, std::vector<Problem> problems);
  Error(ExitCode code, std::string where, std::string what, std::string hint = "");

  ExitCode code() const { return code_; }
  const std::vector<Problem>& problems() const { return problems_; }

 private:
  ExitCode code_;
  std::vector<Problem> problems_;
};

namespace detail {
// An Error type with its fixed exit code.
template <ExitCode kCode>
class ErrorOf : public Error {
 public:
  explicit ErrorOf(std::vector<Problem> problems) : Error(kCode, std::move(problems)) {}
  ErrorOf(std::string where, std::string what, std::string hint = "")
      : Error(kCode, std::move(where), std::move(what), std::move(hint)) {}
};
}  // namespace detail

// An option, its value, or a combination of options is wrong.
class ConfigError : public detail::ErrorOf<ExitCode::kBadInput> {
  using ErrorOf::ErrorOf;
};
// A model folder, weight file or tokenizer file is wrong.
class WeightError : public detail::ErrorOf<ExitCode::kBadInput> {
  using ErrorOf::ErrorOf;
};
// An image, caption or image folder is wrong.
class DataError : public detail::ErrorOf<ExitCode::kBadInput> {
  using ErrorOf::ErrorOf;
};
// No valid checkpoint where one was asked for.
class CheckpointError : public detail::ErrorOf<ExitCode::kNoCheckpoint> {
  using ErrorOf::ErrorOf;
};
// A device computes wrong numbers, or cannot do what was built for it.
class DeviceError : public detail::ErrorOf<ExitCode::kBug> {
  using ErrorOf::ErrorOf;
};
// Memory of the host or the device ran out.
class OutOfMemoryError : public detail::ErrorOf<ExitCode::kOutOfMemory> {
  using ErrorOf::ErrorOf;
};
// The disk refused a write.
class StorageError : public detail::ErrorOf<ExitCode::kStorage> {
  using ErrorOf::ErrorOf;
};
// Loss or gradients stayed non-finite, or an image is.
class NonFiniteError : public detail::ErrorOf<ExitCode::kNonFinite> {
  using ErrorOf::ErrorOf;
};
// Another rank ended or does not answer, or a GPU says that its hardware failed: to be started again.
class PeerLostError : public detail::ErrorOf<ExitCode::kPeerLost> {
  using ErrorOf::ErrorOf;
};

}  // namespace sdtune
