#include "train/plan/plan_json.h"

namespace sdtune::train {
namespace {

// Keys of former versions stand beside those that took their place: class_pictures, looks, class_picture_s, looks_s and
// the `reckoned` of hours_are.
Json parts_json(const std::vector<MemoryPart>& parts) {
  Json list = Json::array();
  for (const MemoryPart& part : parts) list.push_back({{"name", part.name}, {"bytes", part.bytes}});
  return list;
}

Json memory_json(const MemoryPlan& memory) {
  Json phases = Json::array();
  for (const MemoryPhase& phase : memory.phases) {
    phases.push_back({{"name", phase.name}, {"bytes", phase.bytes()}, {"parts", parts_json(phase.parts)}});
  }
  const MemoryPhase& highest = memory.highest();
  return {{"peak_bytes", highest.bytes()}, {"peak_phase", highest.name}, {"phases", std::move(phases)}};
}

Json run_json(const PlannedRun& run) {
  return {
      {"model", run.model},
      {"method", run.config.run.method},
      {"mixed_precision", run.config.precision.mixed_precision},
      {"mixed_precision_on_cpu", run.cpu_precision.empty() ? run.config.precision.mixed_precision : run.cpu_precision},
      {"optimizer", run.config.optim.chosen_optimizer()},
      {"resolution", *run.config.data.resolution},
      {"photos", run.photos},
      {"class_images", run.class_images},
      {"generated_class_images", run.generated_class_images},
      {"batch", run.batch},
      {"ranks", run.ranks},
      {"total_steps", run.total_steps},
      {"epochs", run.epochs()},
      {"trained_parameters", run.trainable_parameters},
      {"total_parameters", run.total_parameters}};
}

Json rental_json(const Rental& rental) {
  Json json = {{"name", rental.offer.name},
               {"memory_bytes", rental.offer.memory_bytes()},
               {"fits", rental.fits},
               {"hours", rental.hours},
               {"hours_from", rental.is_measured ? "measured" : "estimated"},
               {"hours_are", rental.is_measured ? "measured" : "reckoned"},
               {"price", rental.price},
               {"price_per_epoch", rental.price_per_epoch}};
  if (!rental.fits) {
    json["why_not"] = rental.why_not;
    json["fits_with"] = rental.fits_with.empty() ? Json() : Json(rental.fits_with);
    json["fits_preset"] = rental.fits_preset.empty() ? Json() : Json(rental.fits_preset);
  }
  return json;
}

Json probe_json(const ProbedTimes& probed, const RunPlan& plan) {
  return {{"start_s", probed.start},
          {"class_image_s", probed.class_image},
          {"class_picture_s", probed.class_image},
          {"step_s", probed.step},
          {"checkpoint_s", probed.checkpoint},
          {"finish_s", probed.finish},
          {"timed_steps", probed.timed_steps},
          {"peak_bytes", probed.peak_bytes},
          {"validation_and_identity_s", probed.evaluation_images(plan)},
          {"looks_s", probed.evaluation_images(plan)},
          {"total_s", probed.total(plan)}};
}

}  // namespace

Json plan_json(const RunPlan& plan, const std::vector<Rental>& rentals, const std::string& currency,
               const std::optional<ProbedTimes>& probed) {
  Json savings = Json::array(), offers = Json::array();
  for (const Saving& saving : plan.savings) {
    savings.push_back({{"options", saving.options}, {"cpu_bytes", saving.cpu_bytes}, {"gpu_bytes", saving.gpu_bytes}});
  }
  for (const Rental& rental : rentals) offers.push_back(rental_json(rental));
  return {{"run", run_json(plan.run)},
          {"flops",
           {{"step", plan.work.step},
            {"class_images", plan.work.class_images},
            {"class_pictures", plan.work.class_images},
            {"validation_and_identity", plan.work.evaluation_images},
            {"looks", plan.work.evaluation_images},
            {"encoding", plan.work.encoding},
            {"total", plan.work.total}}},
          {"cpu", memory_json(plan.on_cpu)},
          {"gpu", memory_json(plan.on_gpu)},
          {"activations", parts_json(plan.activations)},
          {"savings", std::move(savings)},
          {"currency", currency},
          {"gpus", std::move(offers)},
          {"this_machine", probed ? probe_json(*probed, plan) : Json()}};
}

}  // namespace sdtune::train
