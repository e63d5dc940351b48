// The training images of the portrait base: rendered once by a thread of the pool's own while training already goes on,
// kept on disk in shards. A pool is a function of its options, so it can be deleted and rendered again.
#pragma once

#include <torch/types.h>

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "model/base/json.h"
#include "model/base/stop_flag.h"
#include "model/files/file_system.h"
#include "model/files/mapped_file.h"
#include "train/portrait/renderer/portrait_batch.h"

namespace sdtune::train::pretrain {

struct PoolOptions {
  std::filesystem::path folder;
  std::int64_t size = 64;  // px
  portrait::Detail detail = portrait::Detail::k64;
  std::int64_t first = 0;  // number of the first image, a multiple of `views`
  std::int64_t count = 0;  // images
  std::int64_t views = 4;  // images a person
  int threads = 1;         // that render
};

class ImagePool {
 public:
  static constexpr std::int64_t kShard = 2048;  // images a file

  // Takes over the shards in the folder and starts rendering the others. Throws ConfigError naming the folder when its
  // images are of another size or were made by another renderer.
  ImagePool(FileSystem& files, PoolOptions options);
  ~ImagePool();  // stops rendering after the current image
  ImagePool(const ImagePool&) = delete;
  ImagePool& operator=(const ImagePool&) = delete;

  std::int64_t count() const { return options_.count; }
  std::int64_t views() const { return options_.views; }
  std::int64_t size() const { return options_.size; }
  portrait::Detail detail() const { return options_.detail; }

  // Who and what image `index` of the pool shows, with its caption.
  portrait::Portrait portrait(std::int64_t index) const;
  // What decides all images but for their number: as pool.json has it.
  const Json& description() const { return description_; }
  // Of the waits of images and pixels: after them they throw WaitEnded (stage.h). `stop` must outlive the pool.
  void limit_waits(const StopFlag* stop, std::chrono::steady_clock::time_point deadline);

  // [B, 3, S, S] float32 in [-1, 1] on the CPU. Waits until they are rendered; throws what rendering threw
  // (StorageError).
  torch::Tensor images(const std::vector<std::int64_t>& indices);
  // The same as they are kept: [B, S, S, 3] uint8; see normalized_pixels (image_tensor.h).
  torch::Tensor pixels(const std::vector<std::int64_t>& indices);
  // Whether they are all rendered, or never will be: then images throws at once.
  bool is_ready(const std::vector<std::int64_t>& indices);
  // Waits until all are rendered, a signal came or the deadline passed (then false); throws what rendering threw.
  bool wait_for_all(const StopFlag& stop, std::chrono::steady_clock::time_point deadline);

 private:
  std::int64_t shards() const { return (options_.count + kShard - 1) / kShard; }
  std::int64_t images_in(std::int64_t shard) const;
  std::filesystem::path shard_path(std::int64_t shard) const;
  void check_folder();
  void render_shards();
  bool render_shard(std::int64_t shard);  // false: asked to stop
  void publish(std::int64_t shard);
  const std::byte* wait_for(std::int64_t shard);

  FileSystem& files_;
  PoolOptions options_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::unique_ptr<MappedFile>> ready_;  // by shard; null until rendered
  std::exception_ptr failure_;
  bool stop_ = false;
  Json description_;
  const StopFlag* wait_stop_ = nullptr;
  std::chrono::steady_clock::time_point wait_deadline_ = std::chrono::steady_clock::time_point::max();
  std::thread rendering_;
};

}  // namespace sdtune::train::pretrain
