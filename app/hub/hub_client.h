// Requests to a Hugging Face hub: the token, redirects and retries. What is refused: hub_refusal.h.
#pragma once

#include <cstdint>
#include <string>

#include "app/hub/http_client.h"
#include "app/hub/hub_settings.h"
#include "app/hub/url.h"
#include "model/base/json.h"

namespace sdtune::app {

class HubClient {
 public:
  explicit HubClient(HubSettings settings);

  const HubSettings& settings() const { return settings_; }

  // The answer as JSON. `path` begins with '/', below the endpoint.
  Json get_json(const std::string& path, const HubSubject& subject);
  // With a body; `type` is its Content-Type. A status of `also` (0: none) is an answer too, and gives null.
  Json post_json(const std::string& path, const std::string& body, const std::string& type, const HubSubject& subject,
                 int also = 0);
  // Headers alone: redirects on the endpoint are followed, one to another host is the answer.
  HttpResponse head(const std::string& path, const HubSubject& subject);
  // Bytes from `offset` on, redirects followed; one try. The receiver sees status 200 where the server sends the whole
  // file all the same, and 206 for the rest of it. Returns the answer's head; 416 where there is nothing from there on.
  HttpResponse download(const std::string& path, std::uint64_t offset, const HubSubject& subject,
                        const BodyReceiver& receiver);
  // A request to any URL that the hub named; the token goes along on the endpoint alone. Retried.
  HttpResponse send(const HttpRequest& request, const HubSubject& subject);

  // Waits before the next try after `failures` failed ones; `wanted`: seconds that the server asked for, or 0.
  static void wait_before_retry(std::int64_t failures, std::int64_t wanted);

 private:
  // One try, redirects followed. With `stop_elsewhere` one to another host is the answer.
  HttpResponse follow(HttpRequest request, bool stop_elsewhere, const BodyReceiver& receiver);
  // Tries again where that may help; throws for every status of 400 and above, but for `also`.
  HttpResponse send_with_retries(const HttpRequest& request, bool stop_elsewhere, const HubSubject& subject, int also);

  HubSettings settings_;
  Url endpoint_;
  HttpClient http_;
};

}  // namespace sdtune::app
