#include "train/checkpoint/checkpoint_writer.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "model/base/error.h"
#include "model/files/atomic_folder.h"
#include "model/files/manifest.h"
#include "train/checkpoint/checkpoint_folder.h"
#include "train/checkpoint/checkpoint_reader.h"
#include "train/checkpoint/hashing_file_system.h"

namespace sdtune::train {

namespace fs = std::filesystem;

namespace {

CheckpointTensors local_tensors(model::NamedTensors tensors) {
  std::sort(tensors.begin(), tensors.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  CheckpointTensors local;
  for (const auto& [name, tensor] : tensors)
    local.tensors.push_back({name, tensor.scalar_type(), tensor.sizes().vec()});
  local.read = [tensors = std::move(tensors)](std::size_t index) { return tensors[index].second; };
  return local;
}

CheckpointTensors copy_to_host(const CheckpointTensors& tensors) {
  std::vector<torch::Tensor> copies;
  for (std::size_t i = 0; i < tensors.tensors.size(); ++i) {
    copies.push_back(tensors.read(i).detach().to(torch::kCPU, /*non_blocking=*/false, /*copy=*/true));
  }
  return {tensors.tensors, [copies = std::move(copies)](std::size_t index) { return copies[index]; }};
}

}  // namespace

CheckpointContent checkpoint_content(const Optimizer& optimizer, const model::NamedTensors& averages) {
  model::NamedTensors weights;
  for (std::size_t i = 0; i < optimizer.parameters().size(); ++i) {
    weights.emplace_back(optimizer.parameters()[i].name, optimizer.masters()[i]);
  }
  return {local_tensors(std::move(weights)), local_tensors(optimizer.states()), local_tensors(averages)};
}

CheckpointContent copy_to_host(const CheckpointContent& content) {
  return {copy_to_host(content.weights), copy_to_host(content.states), copy_to_host(content.averages)};
}

CheckpointWriter::CheckpointWriter(FileSystem& files, fs::path checkpoints, std::optional<std::int64_t> limit)
    : files_(files), checkpoints_(std::move(checkpoints)), limit_(limit) {}

std::optional<fs::path> CheckpointWriter::find(std::int64_t step) const {
  const fs::path path = checkpoint_path(checkpoints_, step);
  if (!fs::exists(path) || !checkpoint_faults(path).empty()) return std::nullopt;
  return path;
}

fs::path CheckpointWriter::write(const Optimizer& optimizer, const RunState& state,
                                 const model::NamedTensors& averages) {
  return write(checkpoint_content(optimizer, averages), state);
}

fs::path CheckpointWriter::write(const CheckpointContent& content, const RunState& state) {
  if (const std::optional<fs::path> there = find(state.step)) return *there;
  const fs::path final_path = checkpoint_path(checkpoints_, state.step);
  if (fs::exists(final_path)) files_.remove_tree(final_path);
  const fs::path temporary = temporary_path(final_path);
  if (fs::exists(temporary)) files_.remove_tree(temporary);
  try {
    files_.create_directories(temporary);
    write_files(temporary, content, state);
    files_.sync_directory(temporary);
    files_.rename(temporary, final_path);
  } catch (const Error&) {
    remove_tree_quietly(files_, temporary);  // a full disk must not stay full of half a checkpoint
    throw;
  }
  files_.sync_directory(checkpoints_);
  const std::vector<Problem> faults = checkpoint_faults(final_path, PageCache::kDrop);
  if (!faults.empty()) throw StorageError(faults);
  std::optional<Problem> left = remove_old_checkpoints(files_, checkpoints_, state.step, limit_);
  if (left && !std::exchange(has_warned_, true)) warning_ = std::move(left);
  return final_path;
}

void CheckpointWriter::write_files(const fs::path& folder, const CheckpointContent& content, const RunState& state) {
  HashingFileSystem hashing(files_, folder);
  const auto write_tensors = [&](const char* file, const CheckpointTensors& tensors) {
    model::write_safetensors(hashing, folder / file, tensors.tensors, tensors.read);
  };
  write_tensors(kWeightsFile, content.weights);
  write_tensors(kOptimizerFile, content.states);
  if (!content.averages.tensors.empty()) write_tensors(kAveragesFile, content.averages);
  write_file_atomically(hashing, folder / kStateFile, state.to_json().dump(2) + "\n");
  hashing.manifest().write(files_, folder);
}

}  // namespace sdtune::train
