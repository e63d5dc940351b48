#include "train/run/compare_replicas.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "model/files/sha256.h"
#include "model/pipeline/bundle.h"
#include "train/data/photo_set.h"
#include "train/dist/gather_json.h"
#include "train/dist/host_name.h"
#include "train/resume/replica.h"
#include "train/resume/resume_fingerprint.h"

namespace sdtune::train {

namespace {

constexpr std::size_t kMostRanks = 3;  // that are described

Replica own_replica(const TrainConfig& config, Preflight& preflight) {
  Replica replica;
  const std::vector<std::pair<std::string, std::string>> base = hashes_of_base(model::find_base(config.run.base));
  preflight.resume.base_hash = hash_of_base(base);
  replica.base = {base.begin(), base.end()};
  std::vector<Photo> photos = preflight.photos.folder.photos;
  drop_unused_faces(photos, config.data);
  replica.images = fingerprint_images(photos, {}, config.objective.masked_loss);
  replica.held_out = fingerprint_images(preflight.held_out.folder.photos, {}, false);
  return replica;
}

[[noreturn]] void refuse(const std::vector<Json>& of_ranks) {
  const auto name = [&](std::size_t rank) {
    return "rank " + std::to_string(rank) + " (" + of_ranks[rank].at("host").get<std::string>() + ")";
  };
  const Replica first = Replica::from_json(of_ranks[0].at("replica"));
  std::vector<std::string> different;
  std::string what;
  std::size_t others = 0;
  for (std::size_t rank = 1; rank < of_ranks.size(); ++rank) {
    const std::string difference = replica_difference(first, Replica::from_json(of_ranks[rank].at("replica")));
    if (difference.empty()) continue;
    different.push_back(name(rank));
    if (++others > kMostRanks) continue;
    what += others == 1 ? "has " : "; rank " + std::to_string(rank) + " has ";
    what += difference;
  }
  const std::string who = fmt::format("{}", fmt::join(different, ", "));
  throw ConfigError(who, what + ", compared with " + name(0), "all ranks must read the same files");
}

}  // namespace

void compare_replicas(ProcessGroup& group, const TrainConfig& config, Preflight& preflight) {
  if (group.world_size() == 1) return;
  const Json mine = own_replica(config, preflight).to_json();
  const std::vector<std::uint8_t> bytes = Json::to_cbor(mine);
  group.barrier();  // their disks differ in speed
  const std::vector<std::string> hashes = group.gather_text(sha256_hex(std::string(bytes.begin(), bytes.end())));
  if (std::all_of(hashes.begin(), hashes.end(), [&](const std::string& hash) { return hash == hashes[0]; })) return;
  const std::vector<Json> of_ranks = gather_json(group, {{"host", host_name()}, {"replica", mine}});
  group.barrier();  // no rank ends before all have read it
  refuse(of_ranks);
}

}  // namespace sdtune::train
