#include "train/identity/identity_evaluation.h"

#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "model/base/json.h"
#include "model/files/file_system.h"
#include "train/dist/stop_request.h"
#include "train/identity/model_images.h"

namespace sdtune::train {

namespace fs = std::filesystem;

namespace {

// Apart from the seeds of validation images and of what people generate afterwards.
constexpr std::uint64_t kFirstSeed = 1'000'000;

IdentityPlan plan_of(const IdentityOptions& options) {
  return {options.num_identity_images, options.num_class_images(), kFirstSeed};
}

// As the first rank sees it.
std::string agreed_text(ProcessGroup& group, const std::string& text) {
  return group.gather_text(group.is_first() ? text : std::string()).front();
}

// Ranks that read faces by other files would not know each other's results: one would evaluate, or end, at a step at
// which another goes on, and they would wait for each other.
std::string agreed_digest(const IdentityContext& context) {
  std::string own = identity_eval_digest(context);
  const std::vector<std::string> digests = context.group.gather_text(own);
  for (std::size_t rank = 1; rank < digests.size(); ++rank) {
    if (digests[rank] == digests[0]) continue;
    context.group.barrier();  // no rank ends before all have read it
    throw ConfigError("rank " + std::to_string(rank),
                      "has another portrait classifier, recognition network or face model than rank 0",
                      "all ranks must read the same files");
  }
  return own;
}

std::string file_text(const fs::path& path) {
  return is_file(path) ? read_file(path) : std::string();
}

std::string whole_lines(const std::string& text) {
  return text.substr(0, text.rfind('\n') + 1);
}

}  // namespace

IdentityEvaluation::IdentityEvaluation(const IdentityContext& context, const std::vector<Observer*>& observers)
    : context_(context),
      observers_(observers),
      digest_(agreed_digest(context)),
      evaluator_(make_identity_reader(context), identity_subjects(context), plan_of(context.config.identity)),
      curve_(digest_) {
  const fs::path path = context_.folder.identity();
  const std::string lines = whole_lines(file_text(path));
  curve_.read(agreed_text(context_.group, lines));
  context_.inputs = {};  // the photos are in the evaluator now
  if (!context_.group.is_first()) return;
  // A line that a kill cut short would swallow the next one.
  if (lines != file_text(path)) write_file_atomically(real_file_system(), path, lines);
  const std::string failure = lines_.open(path);
  if (!failure.empty()) throw StorageError(path.string(), "cannot be written: " + failure);
}

bool IdentityEvaluation::is_due(std::int64_t done) const {
  return done % *context_.config.identity.identity_steps == 0 || done == context_.total_steps;
}

bool IdentityEvaluation::is_over(std::int64_t done) const {
  const std::optional<std::int64_t> patience = context_.config.identity.early_stop_patience;
  return patience && curve_.is_on_plateau(done, *patience);
}

torch::Tensor IdentityEvaluation::generate_share() {
  const std::int64_t side = identity_image_side(context_);
  const GenerateImages source = model_images(
      context_.bundle,
      {.steps = context_.config.identity.identity_inference_steps, .stop = &context_.stop.requested(), .side = side});
  const std::vector<IdentityImage>& wanted = evaluator_.images();
  const auto count = static_cast<std::int64_t>(wanted.size());
  const std::int64_t rank = context_.group.rank(), ranks = context_.group.world_size();
  torch::Tensor images = torch::zeros({count, 3, side, side});
  const std::int64_t end = count * (rank + 1) / ranks;
  for (std::int64_t first = count * rank / ranks; first < end; first += kImagesAtOnce) {
    const std::int64_t last = std::min(first + kImagesAtOnce, end);
    std::vector<std::string> prompts;
    std::vector<std::uint64_t> seeds;
    for (std::int64_t i = first; i < last; ++i) {
      prompts.push_back(wanted[static_cast<std::size_t>(i)].prompt);
      seeds.push_back(wanted[static_cast<std::size_t>(i)].seed);
    }
    const torch::Tensor generated = source(prompts, seeds);
    if (!generated.defined()) break;
    images.narrow(0, first, last - first).copy_(generated);
  }
  return images.to(context_.device);
}

std::optional<SharedFailure> IdentityEvaluation::evaluate(std::int64_t done,
                                                          const std::vector<torch::Tensor>& weights) {
  if (curve_.has(done)) {  // by an earlier attempt, whose step is done again
    if (context_.group.is_first()) tell_of(curve_.at(done));
    return std::nullopt;
  }
  const torch::NoGradGuard no_grad;
  torch::Tensor images;
  std::optional<SharedFailure> failure = run_share(context_.group, [&] { images = generate_share(); });
  if (agreed_signal(context_.group, context_.stop) != 0) return std::nullopt;
  if (failure) return failure;
  context_.group.all_reduce_sum(images);
  context_.group.settle();
  IdentityScores scores;
  failure = run_share(context_.group, [&] {
    scores = evaluator_.score(images.cpu());
    if (std::isfinite(scores.identity) && std::isfinite(scores.total())) return;
    throw DataError("identity evaluation", "generated images hold numbers that are not finite",
                    "does the run diverge? A smaller learning_rate helps");
  });
  // Reading takes its time, too, and may have been cut short.
  if (agreed_signal(context_.group, context_.stop) != 0) return std::nullopt;
  if (failure) return failure;
  keep(done, scores, weights);
  return std::nullopt;
}

void IdentityEvaluation::keep(std::int64_t done, const IdentityScores& scores,
                              const std::vector<torch::Tensor>& weights) {
  // The first rank's numbers for all: whether the run is over must not depend on a last digit.
  const std::string line = curve_.line_of({done, scores}).dump() + "\n";
  IdentityCurve only(digest_);
  only.read(agreed_text(context_.group, line));
  const IdentityResult result = only.results().at(0);
  // The weights before the line: a kill in between only means that this step is evaluated again.
  if (curve_.is_better(result) && context_.config.identity.keep_best && context_.group.is_first()) {
    write_best_weights(real_file_system(), context_.folder.best(), context_.parameters, weights, {digest_, done});
  }
  curve_.add(result);
  if (context_.group.is_first()) record(result);
}

void IdentityEvaluation::record(const IdentityResult& result) {
  const std::string failure = lines_.append(curve_.line_of(result).dump() + "\n");
  if (!failure.empty()) throw StorageError(context_.folder.identity().string(), "cannot be written: " + failure);
  tell_of(result);
}

void IdentityEvaluation::tell_of(const IdentityResult& result) {
  IdentityEvent event;
  event.step = result.step;
  event.identity = result.scores.identity;
  event.accepted = result.scores.accepted;
  event.prompt_fidelity = result.scores.prompt_fidelity;
  event.leak = result.scores.leak;
  event.score = result.scores.total();
  event.is_best = curve_.best(result.step) == result.step;
  tell(observers_, &Observer::on_identity, event);
}

std::optional<IdentityEvaluation::Best> IdentityEvaluation::best() {
  const std::optional<std::int64_t> step = curve_.best();
  if (!step || !context_.config.identity.keep_best) return std::nullopt;
  try {
    return Best{*step, read_best_weights(context_.folder.best(), context_.parameters, {digest_, *step})};
  } catch (const CheckpointError& error) {
    for (Problem problem : error.problems()) {
      problem.hint = "model/ is made of the last step's weights, though step " + std::to_string(*step) + " was better";
      tell(observers_, &Observer::on_warning, problem);
    }
  }
  return std::nullopt;
}

}  // namespace sdtune::train
