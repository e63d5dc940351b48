#include "train/dist/send_files.h"

#include <algorithm>
#include <cstring>
#include <fstream>
#include <memory>
#include <optional>
#include <set>
#include <thread>
#include <utility>

#include "model/base/error.h"
#include "model/files/sha256.h"
#include "train/dist/gather_json.h"
#include "train/dist/host_name.h"
#include "train/dist/stop_request.h"

namespace sdtune::train {

namespace {

namespace fs = std::filesystem;

constexpr std::chrono::milliseconds kLookAgain{200};
constexpr const char* kMark = ".receives-";  // a rank that sees this file sees the folder of the rank that made it

bool has_content(const fs::path& path, const SentFile& file) {
  try {
    return is_file(path) && fs::file_size(path) == file.size && sha256_of_file(path) == file.sha256;
  } catch (const std::exception&) {  // on its way
    return false;
  }
}

// A file that is not whole yet, and is gone at the end unless it got its name.
class PartialFile {
 public:
  PartialFile(FileSystem& system, fs::path path) : system_(system), path_(std::move(path)) {}
  ~PartialFile() {
    try {
      if (fs::exists(path_)) system_.unlink(path_);
    } catch (const std::exception&) {  // a failure is on its way to the user already
    }
  }
  PartialFile(const PartialFile&) = delete;
  PartialFile& operator=(const PartialFile&) = delete;
  const fs::path& path() const { return path_; }

 private:
  FileSystem& system_;
  fs::path path_;
};

// One exchange: what a rank fails at is kept until the end, since the others go on sending.
class Exchange {
 public:
  Exchange(ProcessGroup& group, FileSystem& system, const std::vector<SentFile>& files, const FileExchange& exchange)
      : group_(group), system_(system), files_(files), exchange_(exchange) {}

  void run(const std::vector<std::size_t>& lacking, const std::vector<std::size_t>& sent) {
    attempt([&] { refuse_other_files(lacking); });
    throw_first_failure();
    const bool writes = choose_writer(!lacking.empty());
    for (const std::size_t index : sent) {
      send(index, writes && std::binary_search(lacking.begin(), lacking.end(), index));
    }
    if (writes) attempt([&] { system_.sync_directory(exchange_.target); });
    throw_first_failure();
    if (!writes) attempt([&] { await(lacking); });
    throw_first_failure();
  }

 private:
  template <typename Work>
  void attempt(const Work& work) {
    if (failure_) return;
    try {
      work();
    } catch (const Error& error) {
      failure_ = error;
    } catch (const fs::filesystem_error& error) {
      failure_ = StorageError(error.path1().string(), error.code().message());
    }
  }

  std::string rank_name() const { return "rank " + std::to_string(group_.rank()) + " (" + host_name() + ")"; }

  // The same on every rank.
  void throw_first_failure() {
    Json mine;
    if (failure_) {
      const Problem& problem = failure_->problems().front();
      mine = {static_cast<int>(failure_->code()), problem.where, problem.what, problem.hint};
    }
    group_.barrier();  // their disks differ in speed
    for (const Json& of_rank : gather_json(group_, mine)) {
      if (of_rank.is_null()) continue;
      throw Error(static_cast<ExitCode>(of_rank[0].get<int>()),
                  {{of_rank[1].get<std::string>(), of_rank[2].get<std::string>(), of_rank[3].get<std::string>()}});
    }
  }

  void refuse_other_files(const std::vector<std::size_t>& lacking) const {
    for (const std::size_t index : lacking) {
      const fs::path path = exchange_.target / files_[index].name;
      if (files_[index].may_replace || !fs::exists(path)) continue;
      throw DataError(path.string(),
                      rank_name() + " has another file of this name than rank " + std::to_string(files_[index].owner),
                      "delete or rename one of them");
    }
  }

  // Whether this rank writes: the first of those that lack files and see the same folder.
  bool choose_writer(bool lacks) {
    const fs::path mark = exchange_.target / (kMark + std::to_string(group_.rank()));
    attempt([&] {
      if (!lacks) return;
      system_.create_directories(exchange_.target);
      system_.create(mark)->close();
    });
    throw_first_failure();
    bool is_first_here = lacks;
    attempt([&] {
      for (std::int64_t rank = 0; is_first_here && rank < group_.rank(); ++rank) {
        is_first_here = !fs::exists(exchange_.target / (kMark + std::to_string(rank)));
      }
    });
    throw_first_failure();
    attempt([&] {
      if (lacks) system_.unlink(mark);
    });
    return is_first_here;
  }

  void send(std::size_t index, bool writes) {
    const SentFile& file = files_[index];
    const bool owns = file.owner == group_.rank();
    const fs::path path = exchange_.target / file.name;
    const PartialFile partial(system_, partial_name(path).string() + "." + std::to_string(group_.rank()));
    std::ifstream in;
    std::unique_ptr<OutputFile> out;
    Sha256 hash;
    if (owns) in.open(exchange_.source / file.name, std::ios::binary);
    attempt([&] {
      if (!writes) return;
      create_parent_folder(system_, path);
      out = system_.create(partial.path());
    });
    for (std::uint64_t done = 0; done < file.size; done += exchange_.piece) {
      const std::uint64_t count = std::min(exchange_.piece, file.size - done);
      const torch::Tensor bytes = exchange_piece(file, count, in);
      attempt([&] {
        if (!out) return;
        const std::span<const std::byte> span(static_cast<const std::byte*>(bytes.const_data_ptr()), count);
        hash.update(span);
        out->write(span);
      });
    }
    attempt([&] {
      if (!out) return;
      out->sync();
      out->close();
      if (hash.hex_digest() != file.sha256) {
        throw StorageError(path.string(), "arrived at " + rank_name() + " with another content than was listed");
      }
      system_.rename(partial.path(), path);
    });
  }

  // The next `count` bytes of the owner's file, on the CPU.
  torch::Tensor exchange_piece(const SentFile& file, std::uint64_t count, std::ifstream& in) {
    torch::Tensor bytes = torch::zeros({static_cast<std::int64_t>(count)}, torch::kUInt8);
    const bool owns = file.owner == group_.rank();
    attempt([&] {
      if (!owns || in.read(static_cast<char*>(bytes.data_ptr()), static_cast<std::streamsize>(count))) return;
      throw DataError((exchange_.source / file.name).string(), "cannot be read as it was listed");
    });
    wait_for_slow_disks(count);
    torch::Tensor on_device = bytes.to(exchange_.device);
    group_.broadcast(on_device, file.owner);
    group_.settle();
    return on_device.cpu();
  }

  // Once for as many bytes as a piece has at most: small files go without a wait.
  void wait_for_slow_disks(std::uint64_t count) {
    const bool waits = since_wait_ == 0 || since_wait_ + count > exchange_.piece;
    since_wait_ = waits ? count : since_wait_ + count;
    if (!waits) return;
    group_.barrier();
    if (exchange_.stop == nullptr) return;
    if (const int signal = agreed_signal(group_, *exchange_.stop); signal != 0) throw StopRequest{signal};
  }

  // Another rank of this disk writes them.
  void await(const std::vector<std::size_t>& lacking) const {
    const auto start = std::chrono::steady_clock::now();
    for (const std::size_t index : lacking) {
      const fs::path path = exchange_.target / files_[index].name;
      while (!has_content(path, files_[index])) {
        if (std::chrono::steady_clock::now() - start > exchange_.timeout) {
          throw StorageError(path.string(),
                             rank_name() + " does not see this file as another rank of its disk wrote it");
        }
        std::this_thread::sleep_for(kLookAgain);
      }
    }
  }

  ProcessGroup& group_;
  FileSystem& system_;
  const std::vector<SentFile>& files_;
  const FileExchange& exchange_;
  std::optional<Error> failure_;
  std::uint64_t since_wait_ = 0;  // bytes
};

}  // namespace

bool send_files(ProcessGroup& group, FileSystem& system, const std::vector<SentFile>& files,
                const std::vector<std::size_t>& lacking, const FileExchange& exchange) {
  std::set<std::size_t> sent;
  for (const Json& of_rank : gather_json(group, Json(lacking))) {
    const auto indices = of_rank.get<std::vector<std::size_t>>();
    sent.insert(indices.begin(), indices.end());
  }
  if (sent.empty()) return false;
  std::vector<std::size_t> own = lacking;
  std::sort(own.begin(), own.end());
  Exchange(group, system, files, exchange).run(own, {sent.begin(), sent.end()});
  return true;
}

}  // namespace sdtune::train
