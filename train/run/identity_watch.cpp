#include "train/run/identity_watch.h"

#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <utility>

#include "model/base/json.h"
#include "train/evaluate/model_pictures.h"
#include "train/run/identity_reader.h"
#include "train/run/stop_request.h"

namespace sdtune::train {

namespace fs = std::filesystem;

namespace {

// Apart from the seeds of validation pictures and of what people draw afterwards.
constexpr std::uint64_t kFirstSeed = 1'000'000;

evaluate::ProbePlan plan_of(const IdentityOptions& options) {
  return {options.num_identity_images, options.num_class_images(), kFirstSeed};
}

// As the first rank sees it.
std::string agreed_text(ProcessGroup& group, const std::string& text) {
  return group.gather_text(group.is_first() ? text : std::string()).front();
}

std::string file_text(const fs::path& path) {
  std::error_code status;
  return fs::is_regular_file(path, status) ? read_file(path) : std::string();
}

std::string whole_lines(const std::string& text) {
  return text.substr(0, text.rfind('\n') + 1);
}

}  // namespace

IdentityWatch::IdentityWatch(Run& run, const std::vector<Observer*>& observers, const StopFlag& stop)
    : run_(run),
      observers_(observers),
      stop_(stop),
      exam_(identity_exam(run)),
      probe_(make_identity_reader(run, stop), identity_subjects(run), plan_of(run.config.identity)),
      curve_(exam_) {
  const fs::path path = run_.folder.identity();
  const std::string lines = whole_lines(file_text(path));
  curve_.read(agreed_text(*run_.group, lines));
  if (!run_.group->is_first()) return;
  // A line that a kill cut short would swallow the next one.
  if (lines != file_text(path)) write_file_atomically(real_file_system(), path, lines);
  const std::string failure = lines_.open(path);
  if (!failure.empty()) throw StorageError(path.string(), "cannot be written: " + failure);
}

bool IdentityWatch::is_due(std::int64_t done) const {
  return done % *run_.config.identity.identity_steps == 0 || done == run_.total_steps;
}

bool IdentityWatch::is_over(std::int64_t done) const {
  const std::optional<std::int64_t> patience = run_.config.identity.early_stop_patience;
  return patience && curve_.is_on_plateau(done, *patience);
}

// Undefined when any rank was asked to stop.
torch::Tensor IdentityWatch::draw() {
  const std::int64_t side = identity_picture_side(run_);
  const evaluate::DrawPictures source = evaluate::pictures_of(
      run_.bundle, {.steps = run_.config.identity.identity_inference_steps, .stop = &stop_.asked(), .side = side});
  const std::vector<evaluate::ProbePicture>& wanted = probe_.pictures();
  const auto count = static_cast<std::int64_t>(wanted.size());
  const std::int64_t rank = run_.group->rank(), ranks = run_.group->world_size();
  torch::Tensor pictures = torch::zeros({count, 3, side, side});
  const std::int64_t end = count * (rank + 1) / ranks;
  for (std::int64_t first = count * rank / ranks; first < end; first += kLookBatch) {
    const std::int64_t last = std::min(first + kLookBatch, end);
    std::vector<std::string> prompts;
    std::vector<std::uint64_t> seeds;
    for (std::int64_t i = first; i < last; ++i) {
      prompts.push_back(wanted[static_cast<std::size_t>(i)].prompt);
      seeds.push_back(wanted[static_cast<std::size_t>(i)].seed);
    }
    const torch::Tensor drawn = source(prompts, seeds);
    if (!drawn.defined()) break;
    pictures.narrow(0, first, last - first).copy_(drawn);
  }
  run_.group->barrier();  // the shares differ in length
  if (agreed_signal(*run_.group, stop_) != 0) return {};
  pictures = pictures.to(run_.device);
  run_.group->all_reduce_sum(pictures);
  return pictures.cpu();
}

void IdentityWatch::look(std::int64_t done, const std::vector<torch::Tensor>& weights) {
  if (curve_.has(done)) return;
  const torch::NoGradGuard no_grad;
  const torch::Tensor pictures = draw();
  if (!pictures.defined()) return;
  const evaluate::ProbeScores scores = probe_.score(pictures);
  if (agreed_signal(*run_.group, stop_) != 0) return;  // reading takes its time, too, and may have been cut short
  // The first rank's numbers for all: whether the run is over must not depend on a last digit.
  const std::string line = curve_.line_of({done, scores}).dump() + "\n";
  IdentityCurve only(exam_);
  only.read(agreed_text(*run_.group, line));
  const IdentityLook look = only.looks().at(0);
  // The weights before the line: a kill in between only means that this step is looked at again.
  if (curve_.is_better(look) && run_.config.identity.keep_best && run_.group->is_first()) {
    write_best_weights(real_file_system(), run_.folder.best(), *run_.optimizer, weights, {exam_, done});
  }
  curve_.add(look);
  if (run_.group->is_first()) record(look);
}

void IdentityWatch::record(const IdentityLook& look) {
  const std::string failure = lines_.append(curve_.line_of(look).dump() + "\n");
  if (!failure.empty()) throw StorageError(run_.folder.identity().string(), "cannot be written: " + failure);
  IdentityEvent event;
  event.step = look.step;
  event.identity = look.scores.identity;
  event.accepted = look.scores.accepted;
  event.prompt_fidelity = look.scores.prompt_fidelity;
  event.leak = look.scores.leak;
  event.score = look.scores.total();
  event.is_best = curve_.best() == look.step;
  tell(observers_, &Observer::on_identity, event);
}

std::optional<IdentityWatch::Best> IdentityWatch::best() {
  const std::optional<std::int64_t> step = curve_.best();
  if (!step || !run_.config.identity.keep_best) return std::nullopt;
  try {
    return Best{*step, read_best_weights(run_.folder.best(), *run_.optimizer, {exam_, *step})};
  } catch (const CheckpointError& error) {
    for (Problem problem : error.problems()) {
      problem.hint = "model/ is made of the last step's weights, though step " + std::to_string(*step) + " was better";
      tell(observers_, &Observer::on_warning, problem);
    }
  }
  return std::nullopt;
}

}  // namespace sdtune::train
