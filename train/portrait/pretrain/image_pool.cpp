#include "train/portrait/pretrain/image_pool.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <span>
#include <string>
#include <utility>

#include "model/base/error.h"
#include "model/base/json.h"
#include "model/core/image_tensor.h"
#include "model/files/sha256.h"
#include "train/portrait/pretrain/stage.h"
#include "train/portrait/renderer/renderer.h"

namespace sdtune::train::pretrain {

namespace fs = std::filesystem;

namespace {

constexpr std::int64_t kChannels = 3;
constexpr std::int64_t kChunk = 128;                     // images between two reads of stop_
constexpr std::chrono::milliseconds kStopInterval(200);  // between two looks for a signal

// What the renderer renders today, as a hash of a few small images.
std::string renderer_hash(portrait::Detail detail) {
  Sha256 hash;
  for (std::uint64_t seed = 0; seed < 6; ++seed) {
    const portrait::Portrait one = portrait::draw_portrait({seed, seed}, detail);
    const std::vector<std::uint8_t> rgb = portrait::render_batch({one}, 32, 1);
    hash.update(std::as_bytes(std::span(rgb)));
  }
  return hash.hex_digest();
}

// A key of pool.json as the options say it.
std::string words_of(const std::string& key) {
  if (key == "first") return "first image (--first-image)";
  if (key == "size") return "size (--design)";
  return key == "views" ? "number of views" : key;
}

}  // namespace

ImagePool::ImagePool(FileSystem& files, PoolOptions options)
    : files_(files), options_(std::move(options)), ready_(static_cast<std::size_t>(shards())) {
  check_folder();
  rendering_ = std::thread([this] { render_shards(); });
}

ImagePool::~ImagePool() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  rendering_.join();
}

std::int64_t ImagePool::images_in(std::int64_t shard) const {
  return std::min(kShard, options_.count - shard * kShard);
}

fs::path ImagePool::shard_path(std::int64_t shard) const {
  return options_.folder / fmt::format("{:05}.rgb", shard);
}

void ImagePool::check_folder() {
  const fs::path path = options_.folder / "pool.json";
  description_ = {{"renderer", renderer_hash(options_.detail)},
                  {"size", options_.size},
                  {"views", options_.views},
                  {"first", options_.first}};
  files_.create_directories(options_.folder);
  if (!fs::exists(path)) {
    write_file_atomically(files_, path, description_.dump(2) + "\n");
    return;
  }
  const Json found = parse_json(read_file(path), path.string());
  for (const auto& [key, value] : description_.items()) {
    const Json before = found.value(key, Json());
    if (before == value) continue;
    const std::string other = "remove " + options_.folder.string() + ", or choose another --output";
    throw ConfigError(path.string(),
                      "the images were rendered with another " + words_of(key) + " (got " + before.dump() + "; now " +
                          value.dump() + ")",
                      key == "first" ? "give --first-image " + before.dump() + ", " + other : other);
  }
}

portrait::Portrait ImagePool::portrait(std::int64_t index) const {
  const auto image = static_cast<std::uint64_t>(options_.first + index);
  return portrait::draw_portrait({image / static_cast<std::uint64_t>(options_.views), image}, options_.detail);
}

void ImagePool::render_shards() {
  try {
    for (std::int64_t shard = 0; shard < shards(); ++shard) {
      const auto bytes = static_cast<std::uintmax_t>(images_in(shard) * kChannels * options_.size * options_.size);
      std::error_code absent;
      const bool is_there = fs::file_size(shard_path(shard), absent) == bytes && !absent;
      if (!is_there && !render_shard(shard)) return;
      publish(shard);
    }
  } catch (...) {
    const std::lock_guard lock(mutex_);
    failure_ = std::current_exception();
  }
  changed_.notify_all();
}

bool ImagePool::render_shard(std::int64_t shard) {
  std::string bytes;
  for (std::int64_t done = 0; done < images_in(shard); done += kChunk) {
    {
      const std::lock_guard lock(mutex_);
      if (stop_) return false;
    }
    std::vector<portrait::Portrait> chunk;
    for (std::int64_t i = done; i < std::min(done + kChunk, images_in(shard)); ++i) {
      chunk.push_back(portrait(shard * kShard + i));
    }
    const std::vector<std::uint8_t> rgb = portrait::render_batch(chunk, options_.size, options_.threads);
    bytes.append(reinterpret_cast<const char*>(rgb.data()), rgb.size());
  }
  write_file_atomically(files_, shard_path(shard), bytes);
  return true;
}

void ImagePool::publish(std::int64_t shard) {
  auto file = std::make_unique<MappedFile>(shard_path(shard));
  {
    const std::lock_guard lock(mutex_);
    ready_[static_cast<std::size_t>(shard)] = std::move(file);
  }
  changed_.notify_all();
}

void ImagePool::limit_waits(const StopFlag* stop, std::chrono::steady_clock::time_point deadline) {
  wait_stop_ = stop;
  wait_deadline_ = deadline;
}

const std::byte* ImagePool::wait_for(std::int64_t shard) {
  std::unique_lock lock(mutex_);
  const std::unique_ptr<MappedFile>& file = ready_.at(static_cast<std::size_t>(shard));
  const auto is_over = [&] { return file || failure_; };
  while (!changed_.wait_for(lock, kStopInterval, is_over)) {
    const bool is_stopped = wait_stop_ != nullptr && wait_stop_->signal() != 0;
    if (is_stopped || std::chrono::steady_clock::now() >= wait_deadline_) throw WaitEnded();
  }
  if (!file) std::rethrow_exception(failure_);
  return file->bytes().data();
}

bool ImagePool::is_ready(const std::vector<std::int64_t>& indices) {
  const std::lock_guard lock(mutex_);
  return failure_ || std::all_of(indices.begin(), indices.end(), [&](std::int64_t index) {
           return ready_.at(static_cast<std::size_t>(index / kShard)) != nullptr;
         });
}

bool ImagePool::wait_for_all(const StopFlag& stop, std::chrono::steady_clock::time_point deadline) {
  std::unique_lock lock(mutex_);
  const auto is_over = [&] { return failure_ || ready_.back(); };  // rendered one after another
  while (!is_over() && stop.signal() == 0 && std::chrono::steady_clock::now() < deadline) {
    changed_.wait_for(lock, kStopInterval, is_over);
  }
  if (failure_) std::rethrow_exception(failure_);
  return ready_.back() != nullptr;
}

torch::Tensor ImagePool::images(const std::vector<std::int64_t>& indices) {
  return model::normalized_pixels(pixels(indices));
}

torch::Tensor ImagePool::pixels(const std::vector<std::int64_t>& indices) {
  const std::int64_t side = options_.size, bytes = kChannels * side * side;
  const torch::Tensor rgb =
      torch::empty({static_cast<std::int64_t>(indices.size()), side, side, kChannels}, torch::kUInt8);
  auto* to = rgb.data_ptr<std::uint8_t>();
  for (const std::int64_t index : indices) {
    const auto* from = reinterpret_cast<const std::uint8_t*>(wait_for(index / kShard)) + index % kShard * bytes;
    to = std::copy(from, from + bytes, to);
  }
  return rgb;
}

}  // namespace sdtune::train::pretrain
