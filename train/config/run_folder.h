// The paths of a run folder, as docs and users know them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "train/config/train_config.h"

namespace sdtune::train {

struct RunFolder {
  std::filesystem::path root;

  std::filesystem::path config() const { return root / "config.yaml"; }
  std::filesystem::path record() const { return root / "run.json"; }
  // Attempts that ended before their first step and are not in run.json yet.
  std::filesystem::path unstarted() const { return root / "unstarted.json"; }
  std::filesystem::path metrics() const { return root / "metrics.jsonl"; }
  std::filesystem::path validation() const { return root / "validation.jsonl"; }
  std::filesystem::path identity() const { return root / "identity.jsonl"; }
  std::filesystem::path report() const { return root / "report.html"; }
  std::filesystem::path last_error() const { return root / "last_error.json"; }
  std::filesystem::path log() const { return root / "train.log"; }
  std::filesystem::path lock() const { return root / "run.lock"; }
  std::filesystem::path checkpoints() const { return root / "checkpoints"; }
  std::filesystem::path best() const { return root / "best"; }
  std::filesystem::path samples() const { return root / "samples"; }
  std::filesystem::path profile() const { return root / "profile"; }
  std::filesystem::path class_images() const { return root / "class_images"; }
  std::filesystem::path cache() const { return root / "cache"; }
  std::filesystem::path contact_sheet() const { return root / "contact_sheet.png"; }
  std::filesystem::path model() const { return root / "model"; }

  // The folder's own name, also of "runs/me/" and ".".
  std::string name() const;
  // Whether a run was begun here, finished or not.
  bool has_run() const;
};

// Where a run of `config` goes: its output, or runs/<name of the photo folder>.
RunFolder run_folder(const TrainConfig& config);

}  // namespace sdtune::train
