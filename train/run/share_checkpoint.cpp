#include "train/run/share_checkpoint.h"

#include <unistd.h>

#include <chrono>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "model/files/manifest.h"
#include "model/files/sha256.h"
#include "train/checkpoint/checkpoint_folder.h"
#include "train/checkpoint/checkpoint_reader.h"
#include "train/config/run_folder.h"
#include "train/dist/gather_json.h"
#include "train/dist/host_name.h"
#include "train/dist/send_files.h"

namespace sdtune::train {

namespace {

namespace fs = std::filesystem;

constexpr const char* kReceived = "received-checkpoint";  // in a run folder, while a run starts

// The newest checkpoint of the run's own folder, by its manifest, which lists the hashes of its files.
Json newest_here(const fs::path& checkpoints) {
  for (const CheckpointFolder& folder : list_checkpoints(checkpoints)) {
    const fs::path manifest = folder.path / kManifestName;
    if (is_file(manifest)) return {folder.step, sha256_of_file(manifest)};
  }
  return nullptr;
}

// The checkpoint, as the others must know it to look for it and to receive it.
Json described(const ResumePoint& resume) {
  if (resume.checkpoint.empty()) return nullptr;
  const fs::path manifest = resume.checkpoint / kManifestName;
  Json files = Json::array();
  for (const ManifestEntry& entry : Manifest::read(resume.checkpoint).files) {
    files.push_back({entry.name, entry.size, entry.sha256});
  }
  files.push_back({kManifestName, fs::file_size(manifest), sha256_of_file(manifest)});  // last: only then it is whole
  const auto now = std::chrono::system_clock::now().time_since_epoch().count();
  return {{"path", resume.checkpoint.string()},
          {"step", resume.state.step},
          {"manifest", files.back()[2]},
          {"files", files},
          {"copy", std::to_string(now) + "-" + std::to_string(::getpid())}};
}

std::vector<SentFile> files_of(const Json& checkpoint) {
  std::vector<SentFile> files;
  for (const Json& entry : checkpoint.at("files")) {
    files.push_back({entry[0].get<std::string>(), entry[1].get<std::uint64_t>(), entry[2].get<std::string>()});
  }
  return files;
}

// Where this rank has the same one, whole.
std::optional<fs::path> found_here(const Json& checkpoint, const fs::path& checkpoints) {
  const fs::path given = checkpoint.at("path").get<std::string>();
  for (const fs::path& path : {given, checkpoint_path(checkpoints, checkpoint.at("step").get<std::int64_t>())}) {
    const fs::path manifest = path / kManifestName;
    if (!is_file(manifest) || sha256_of_file(manifest) != checkpoint.at("manifest").get<std::string>()) continue;
    if (checkpoint_faults(path).empty()) return path;
  }
  return std::nullopt;
}

// Ranks whose run folder has another newest checkpoint than the first rank's.
std::vector<Problem> other_checkpoints(const std::vector<Json>& of_ranks) {
  std::vector<Problem> warnings;
  const Json& first = of_ranks[0];
  const Json& used = first.at("checkpoint");
  for (std::size_t rank = 1; rank < of_ranks.size(); ++rank) {
    const Json& newest = of_ranks[rank].at("newest");
    if (newest.is_null() || newest == first.at("newest")) continue;
    const std::string who = "rank " + std::to_string(rank) + " (" + of_ranks[rank].at("host").get<std::string>() + ")";
    const std::string has = "has a checkpoint of step " + std::to_string(newest[0].get<std::int64_t>()) +
                            " that rank 0 (" + first.at("host").get<std::string>() + ") does not have as its newest: ";
    warnings.push_back({who,
                        has + (used.is_null() ? "the run starts fresh"
                                              : "rank 0's of step " +
                                                    std::to_string(used.at("step").get<std::int64_t>()) + " is used"),
                        "machine 0 must be the one with the checkpoints to go on with"});
  }
  return warnings;
}

// What a killed start left; several ranks of a disk may be at it.
void remove_other_copies(const fs::path& folder, const std::string& copy) {
  std::error_code none;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, none)) {
    if (entry.path().filename() != copy) ReceivedCheckpoint(entry.path());
  }
}

}  // namespace

ReceivedCheckpoint::~ReceivedCheckpoint() {
  try {
    if (fs::exists(folder_)) real_file_system().remove_tree(folder_);
  } catch (const std::exception&) {  // another rank of this disk removes it too
  }
  std::error_code not_empty;
  fs::remove(folder_.parent_path(), not_empty);
}

std::unique_ptr<ReceivedCheckpoint> share_checkpoint(ProcessGroup& group, const TrainConfig& config,
                                                     torch::Device device, ResumePoint& resume, const StopFlag& stop) {
  if (group.world_size() == 1) return nullptr;
  const RunFolder folder = run_folder(config);
  Json mine = {{"host", host_name()}, {"newest", newest_here(folder.checkpoints())}};
  if (group.is_first()) {
    mine["checkpoint"] = described(resume);
    mine["continues"] = !config.checkpoint.resume_from_checkpoint.empty();
  }
  const std::vector<Json> of_ranks = gather_json(group, mine);
  if (group.is_first() && mine.at("continues").get<bool>()) {
    for (Problem& warning : other_checkpoints(of_ranks)) resume.warnings.push_back(std::move(warning));
  }
  const Json& checkpoint = of_ranks[0].at("checkpoint");
  if (checkpoint.is_null()) return nullptr;
  const std::optional<fs::path> here =
      group.is_first() ? std::optional(resume.checkpoint) : found_here(checkpoint, folder.checkpoints());
  const std::string copy = checkpoint.at("copy");
  const fs::path target = folder.root / kReceived / copy;
  std::unique_ptr<ReceivedCheckpoint> received;
  const std::vector<SentFile> files = files_of(checkpoint);
  std::vector<std::size_t> lacking;
  if (!here) {
    remove_other_copies(target.parent_path(), copy);
    received = std::make_unique<ReceivedCheckpoint>(target);
    for (std::size_t i = 0; i < files.size(); ++i) lacking.push_back(i);
  }
  group.barrier();  // those that have one have read all of it
  send_files(group, real_file_system(), files, lacking,
             {device, resume.checkpoint, target, std::chrono::duration<double>(config.dist.peer_timeout), &stop});
  resume.checkpoint = here.value_or(target);
  if (!group.is_first()) resume.state = read_run_state(resume.checkpoint);
  return received;
}

}  // namespace sdtune::train
