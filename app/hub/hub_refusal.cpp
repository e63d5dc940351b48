#include "app/hub/hub_refusal.h"

#include <fmt/format.h>

#include "app/hub/network_error.h"
#include "model/base/error.h"

namespace sdtune::app {
namespace {

// What the server says itself, cut to a line's length.
std::string said_by(const HttpResponse& response) {
  const std::string text = response.header("x-error-message");
  return text.empty() ? "" : " (the hub says: " + text.substr(0, 200) + ")";
}

[[noreturn]] void refuse_token(const HubSubject& subject, const HubSettings& settings, const std::string& said) {
  const std::string how = "make one at " + settings.endpoint + "/settings/tokens and set HF_TOKEN";
  if (settings.token.empty())
    throw ConfigError(subject.id, "is not there, or asks for a token, and there is none" + said, how);
  throw ConfigError("HF_TOKEN", "is refused by " + settings.endpoint + ": it is wrong or has expired" + said, how);
}

[[noreturn]] void refuse_gated(const HubSubject& subject, const HubSettings& settings) {
  const std::string page = settings.endpoint + "/" + subject.id;
  throw ConfigError(subject.id, "is gated: its terms must be accepted, by the owner of the token",
                    settings.token.empty() ? "accept them at " + page + " and set HF_TOKEN" : "accept them at " + page);
}

[[noreturn]] void refuse_absent(const HubSubject& subject, const HubSettings& settings, const std::string& code) {
  if (code == "EntryNotFound" || (code.empty() && !subject.file.empty())) {
    throw ConfigError(subject.file, "is not in " + subject.id,
                      "look at " + settings.endpoint + "/" + subject.id + "/tree/main");
  }
  if (code == "RevisionNotFound") {
    throw ConfigError("--revision", fmt::format("{} has none of this name (got {})", subject.id, subject.revision),
                      "give a branch, a tag or a commit");
  }
  throw ConfigError(subject.id, "is not on " + settings.endpoint + ", or it is private",
                    settings.token.empty() ? "check the name; a private one needs HF_TOKEN"
                                           : "check the name, and that the token may read it");
}

}  // namespace

bool may_pass(int status) {
  return status == 408 || status == 425 || status == 429 || status >= 500;
}

std::int64_t wanted_wait(const HttpResponse& response) {
  const std::string text = response.header("retry-after");
  const bool number = !text.empty() && text.size() < 6 && text.find_first_not_of("0123456789") == std::string::npos;
  return number ? std::stoll(text) : 0;
}

void refuse_answer(const HttpResponse& response, const HubSubject& subject, const HubSettings& settings) {
  const std::string code = response.header("x-error-code"), said = said_by(response);
  if (code == "GatedRepo") refuse_gated(subject, settings);
  const bool absent = code == "RepoNotFound" || code == "RevisionNotFound" || code == "EntryNotFound";
  if (absent || response.status == 404) refuse_absent(subject, settings, code);
  if (response.status == 401) refuse_token(subject, settings, said);
  if (response.status == 403) {
    throw ConfigError(subject.id, "is not allowed to this token" + said, "the token needs the right for this model");
  }
  const std::string what = fmt::format("answers with status {}{}", response.status, said);
  if (may_pass(response.status)) {
    throw NetworkError(settings.endpoint, what, "try again later", wanted_wait(response));
  }
  throw ConfigError(settings.endpoint, what);
}

}  // namespace sdtune::app
