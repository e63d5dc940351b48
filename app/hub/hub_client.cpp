#include "app/hub/hub_client.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <string_view>
#include <thread>
#include <utility>

#include "app/hub/hub_refusal.h"
#include "app/hub/network_error.h"

namespace sdtune::app {
namespace {

constexpr int kMostRedirects = 10;
constexpr std::int64_t kLongestWait = 60;  // seconds

bool is_redirect(int status) {
  return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}

}  // namespace

HubClient::HubClient(HubSettings settings) : settings_(std::move(settings)), endpoint_(parse_url(settings_.endpoint)) {}

void HubClient::wait_before_retry(std::int64_t failures, std::int64_t wanted) {
  const std::int64_t doubled = std::int64_t{500} << std::min<std::int64_t>(failures - 1, 4);  // milliseconds
  const std::int64_t milliseconds = std::max(doubled, std::min(wanted, kLongestWait) * 1000);
  std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
}

HttpResponse HubClient::follow(HttpRequest request, bool stop_elsewhere, const BodyReceiver& receiver) {
  Url url = parse_url(request.url);
  const std::vector<std::string> headers = request.headers;
  for (int redirects = 0; redirects <= kMostRedirects; ++redirects) {
    request.url = url.text();
    request.headers = headers;
    if (!settings_.token.empty() && url.same_origin(endpoint_)) {
      request.headers.push_back("Authorization: Bearer " + settings_.token);
    }
    HttpResponse response = http_.send(request, receiver);
    response.url = request.url;
    const std::string location = response.header("location");
    if (!is_redirect(response.status) || location.empty()) return response;
    const Url next = resolve_location(url, location);
    if (stop_elsewhere && !next.same_origin(endpoint_)) return response;
    if (url.scheme == "https" && next.scheme == "http") {
      throw ConfigError(url.authority, "redirects to " + next.authority + " without encryption, which is refused");
    }
    url = next;
  }
  throw ConfigError(endpoint_.authority, fmt::format("redirects more than {} times", kMostRedirects));
}

HttpResponse HubClient::send_with_retries(const HttpRequest& request, bool stop_elsewhere, const HubSubject& subject,
                                          int also) {
  for (std::int64_t failures = 1;; ++failures) {
    std::int64_t wait = 0;
    try {
      HttpResponse response = follow(request, stop_elsewhere, nullptr);
      if (response.status < 400 || response.status == also) return response;
      if (!may_pass(response.status) || failures > settings_.retries) refuse_answer(response, subject, settings_);
      wait = wanted_wait(response);
    } catch (const NetworkError&) {
      if (failures > settings_.retries) throw;
    }
    wait_before_retry(failures, wait);
  }
}

Json HubClient::get_json(const std::string& path, const HubSubject& subject) {
  const HttpRequest request{.url = settings_.endpoint + path, .headers = {"Accept: application/json"}};
  return parse_json(send_with_retries(request, false, subject, 0).body, settings_.endpoint + path);
}

Json HubClient::post_json(const std::string& path, const std::string& body, const std::string& type,
                          const HubSubject& subject, int also) {
  const HttpRequest request{
      .method = "POST",
      .url = settings_.endpoint + path,
      .headers = {"Content-Type: " + type, "Accept: " + (type == "application/x-ndjson" ? "application/json" : type)},
      .body = body};
  const HttpResponse response = send_with_retries(request, false, subject, also);
  if (response.status == also || response.body.empty()) return nullptr;
  return parse_json(response.body, settings_.endpoint + path);
}

HttpResponse HubClient::head(const std::string& path, const HubSubject& subject) {
  const HttpRequest request{
      .method = "HEAD", .url = settings_.endpoint + path, .headers = {"Accept-Encoding: identity"}};
  return send_with_retries(request, true, subject, 0);
}

HttpResponse HubClient::download(const std::string& path, std::uint64_t offset, const HubSubject& subject,
                                 const BodyReceiver& receiver) {
  HttpRequest request{.url = settings_.endpoint + path, .headers = {"Accept-Encoding: identity"}};
  if (offset > 0) request.headers.push_back(fmt::format("Range: bytes={}-", offset));
  HttpResponse response = follow(request, false, receiver);
  if (response.status < 400 || response.status == 416) return response;
  const Url answered = parse_url(response.url);
  if (answered.same_origin(endpoint_)) refuse_answer(response, subject, settings_);
  // An address of that other server is good for a while only; the next try asks for a new one.
  throw NetworkError(answered.authority, fmt::format("answers with status {}", response.status), "",
                     wanted_wait(response));
}

HttpResponse HubClient::send(const HttpRequest& request, const HubSubject& subject) {
  return send_with_retries(request, false, subject, 0);
}

}  // namespace sdtune::app
