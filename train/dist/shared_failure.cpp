#include "train/dist/shared_failure.h"

#include <new>
#include <string>
#include <utility>

#include "model/base/json.h"
#include "model/core/out_of_memory.h"

namespace sdtune::train {

namespace {

SharedFailure out_of_memory(const std::string& what) {
  return {ExitCode::kOutOfMemory, {"memory", what.substr(0, what.find('\n')), ""}, std::current_exception()};
}

std::optional<SharedFailure> own_failure(const std::function<void()>& work) {
  try {
    work();
  } catch (const Error& error) {
    const ExitCode code = error.code();
    if (code != ExitCode::kBadInput && code != ExitCode::kNonFinite && code != ExitCode::kOutOfMemory) throw;
    return SharedFailure{error.code(), error.problems().front(), std::current_exception()};
  } catch (const c10::Error& error) {
    if (!model::is_out_of_memory(error)) throw;
    return out_of_memory(error.what_without_backtrace());
  } catch (const std::bad_alloc& error) {
    return out_of_memory(model::words_of(error));
  }
  return std::nullopt;
}

std::string text_of(const std::optional<SharedFailure>& failure) {
  if (!failure) return {};
  const Problem& problem = failure->problem;
  return Json{static_cast<int>(failure->code), problem.where, problem.what, problem.hint}.dump(
      -1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace

void SharedFailure::rethrow() const {
  if (own) std::rethrow_exception(own);
  throw Error(code, {problem});
}

std::optional<SharedFailure> run_share(ProcessGroup& group, const std::function<void()>& work) {
  std::optional<SharedFailure> own = own_failure(work);
  group.barrier();  // the shares differ in length
  for (const std::string& text : group.gather_text(text_of(own))) {
    if (text.empty()) continue;
    const Json first = Json::parse(text);
    return SharedFailure{static_cast<ExitCode>(first[0].get<int>()),
                         {first[1], first[2], first[3]},
                         own ? own->own : std::exception_ptr()};
  }
  return std::nullopt;
}

}  // namespace sdtune::train
