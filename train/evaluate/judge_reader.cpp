#include "train/evaluate/judge_reader.h"

#include <utility>

#include "train/evaluate/eval_prompts.h"
#include "train/judge/portrait_pictures.h"
#include "train/portrait/portrait_set.h"

namespace sdtune::train::evaluate {
namespace {

constexpr std::size_t kOtherPictures = 64;
// Nobody of `eval`, and nobody whom the judge was measured on.
constexpr std::uint64_t kOtherPeople = 400'000;

// [kOtherPictures, 3, 64, 64]: somebody else each, in what the prompts ask for.
torch::Tensor render_others() {
  std::vector<portrait::Portrait> portraits;
  for (std::size_t i = 0; i < kOtherPictures; ++i) {
    const portrait::PictureSeeds seeds =
        portrait::picture_seeds(portrait::PortraitSet::kValidation, kOtherPeople + i, 0);
    const EvalPrompt& prompt = probe_prompts()[i % probe_prompts().size()];
    portraits.push_back({seeds, portrait::draw_identity(seeds.person), prompt.context(seeds.picture), {}});
  }
  return judge::portrait_pictures(portraits, judge::kJudgeSize, 1);
}

}  // namespace

JudgeReader::JudgeReader(judge::Judge judge) : judge_(std::move(judge)) {}

torch::Tensor JudgeReader::embed(const std::vector<torch::Tensor>& photos) {
  return judge_.read(torch::stack(photos)).embedding;
}

torch::Tensor JudgeReader::others(const std::string&) {
  if (!others_.defined()) others_ = judge_.read(render_others()).embedding;
  return others_;
}

ProbeReading JudgeReader::read(const torch::Tensor& drawn, const std::vector<ProbePicture>& pictures) {
  const judge::Reading reading = judge_.read(drawn);
  const auto count = static_cast<std::int64_t>(pictures.size());
  ProbeReading result{reading.embedding, torch::zeros({count}, torch::kFloat64),
                      torch::zeros({count}, torch::kFloat64)};
  auto asked = result.asked.accessor<double, 1>(), shown = result.shown.accessor<double, 1>();
  for (std::int64_t i = 0; i < count; ++i) {
    const std::optional<std::size_t> prompt = pictures[static_cast<std::size_t>(i)].asked;
    if (!prompt) continue;
    for (const Asked& one : probe_prompts()[*prompt].asked) {
      asked[i] += 1;
      shown[i] += reading.classes(one.head)[i].item<std::int64_t>() == one.shown ? 1 : 0;
    }
  }
  return result;
}

std::optional<double> JudgeReader::threshold() const {
  return judge_.figures().by_references.threshold;
}

}  // namespace sdtune::train::evaluate
