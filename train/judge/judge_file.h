// A judge on disk: judge.safetensors with float16 weights, and judge.json, which says what each output means and how
// good the judge is.
#pragma once

#include <filesystem>

#include "model/base/file_system.h"
#include "train/judge/judge_figures.h"
#include "train/judge/judge_network.h"

namespace sdtune::train::judge {

// Makes the folder; weights first, so that a judge.json has its weights beside it. Throws StorageError.
void save_judge(FileSystem& files, const std::filesystem::path& folder, const JudgeNetwork& network,
                const JudgeFigures& figures);

struct StoredJudge {
  JudgeNetwork network;  // float32, on the CPU
  JudgeFigures figures;
};

// Throws WeightError naming the file: one is missing or damaged, the weights are not this network's, or the heads,
// classes and numbers are not those of this program.
StoredJudge load_judge(const std::filesystem::path& folder);

}  // namespace sdtune::train::judge
