// File systems that go wrong on command, for tests of everything that must survive it.
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "model/base/error.h"
#include "model/files/file_system.h"

namespace sdtune::test {

// Thrown in place of a kill. Not a std::exception, so that no handler of the code under test takes it for a failure.
struct SimulatedKill {};

enum class Fault {
  kNone,
  kFailOnce,    // the operation fails, those after it work
  kFailOnward,  // it and all after it fail: the disk is full, or gone
  kKillBefore,  // the process dies before the operation
  kKillInside,  // ... with half of a write's bytes written; like kKillAfter for the other operations
  kKillAfter,   // ... after it
};

// Passes calls on to the real file system, and at the `at`-th operation (counted from 0) does what `fault` says. After
// a kill nothing has any effect any more. Every write, sync, close, create, rename, folder sync and removal counts.
// Syncs only count: a kill, unlike a power cut, loses nothing that was written, and real ones would take minutes.
class FaultyFileSystem : public FileSystem {
 public:
  FaultyFileSystem() = default;
  FaultyFileSystem(Fault fault, std::size_t at) : fault_(fault), at_(at) {}

  std::size_t operations() const { return count_; }
  // The operations that change more than a file's next bytes, with every `stride`-th write: enough to try where a save
  // of hundreds of tensors is long.
  std::vector<std::size_t> milestones(std::size_t stride) const {
    std::vector<std::size_t> chosen;
    std::size_t writes = 0;
    for (std::size_t at = 0; at < was_write_.size(); ++at) {
      if (!was_write_[at] || writes++ % stride == 0) chosen.push_back(at);
    }
    return chosen;
  }

  std::unique_ptr<OutputFile> create(const std::filesystem::path& path) override {
    std::unique_ptr<OutputFile> file;
    run(path, [&] { file = real_file_system().create(path); });
    return std::make_unique<FaultyFile>(*this, path, std::move(file));
  }
  void rename(const std::filesystem::path& from, const std::filesystem::path& to) override {
    run(to, [&] { real_file_system().rename(from, to); });
  }
  void sync_directory(const std::filesystem::path& path) override {
    run(path, [] {});
  }
  void create_directories(const std::filesystem::path& path) override {
    run(path, [&] { real_file_system().create_directories(path); });
  }
  void unlink(const std::filesystem::path& path) override {
    run(path, [&] { real_file_system().unlink(path); });
  }
  void remove_tree(const std::filesystem::path& path) override {
    run(path, [&] { real_file_system().remove_tree(path); });
  }

 private:
  class FaultyFile : public OutputFile {
   public:
    FaultyFile(FaultyFileSystem& owner, std::filesystem::path path, std::unique_ptr<OutputFile> file)
        : owner_(owner), path_(std::move(path)), file_(std::move(file)) {}
    void write(std::span<const std::byte> bytes) override {
      owner_.run(
          path_, [&] { file_->write(bytes); }, [&] { file_->write(bytes.first(bytes.size() / 2)); });
    }
    void sync() override {
      owner_.run(path_, [] {});
    }
    void close() override {
      owner_.run(path_, [&] { file_->close(); });
    }

   private:
    FaultyFileSystem& owner_;
    std::filesystem::path path_;
    std::unique_ptr<OutputFile> file_;
  };

  template <typename Operation>
  void run(const std::filesystem::path& path, Operation&& operation) {
    run(path, operation, operation, false);
  }

  // `half` is the operation interrupted in its middle.
  template <typename Operation, typename Half>
  void run(const std::filesystem::path& path, Operation&& operation, Half&& half, bool is_write = true) {
    if (killed_) throw SimulatedKill();
    was_write_.push_back(is_write);
    const std::size_t index = count_++;
    const bool hit = index == at_;
    const bool fails = (hit && fault_ == Fault::kFailOnce) || (index >= at_ && fault_ == Fault::kFailOnward);
    if (fails) throw StorageError(path.string(), "fails because the test wants it");
    killed_ = hit && (fault_ == Fault::kKillBefore || fault_ == Fault::kKillInside || fault_ == Fault::kKillAfter);
    if (killed_ && fault_ == Fault::kKillInside) half();
    if (!killed_ || fault_ == Fault::kKillAfter) operation();
    if (killed_) throw SimulatedKill();
  }

  Fault fault_ = Fault::kNone;
  std::size_t at_ = 0;
  std::size_t count_ = 0;
  std::vector<bool> was_write_;
  bool killed_ = false;
};

}  // namespace sdtune::test
