#include "app/hub/http_client.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <string_view>

#include "app/hub/curl_library.h"
#include "app/hub/network_error.h"
#include "app/hub/url.h"

namespace sdtune::app {
namespace {

constexpr long kConnectSeconds = 15;

long silence_seconds() {
  const char* text = std::getenv("HF_HUB_DOWNLOAD_TIMEOUT");
  const long given = text == nullptr ? 0 : std::strtol(text, nullptr, 10);
  return given > 0 ? given : 30;
}

// One transfer's state, which libcurl's callbacks get.
struct Transfer {
  const HttpRequest* request = nullptr;
  const BodyReceiver* receiver = nullptr;
  HttpResponse response;
  std::ifstream file;
  std::uint64_t left = 0;  // of the file's part
  std::size_t sent = 0;    // of the body
  bool too_long = false;
  std::exception_ptr thrown;  // must not pass through libcurl's C code
};

std::size_t take_header(char* text, std::size_t, std::size_t bytes, void* user) {
  HttpResponse& response = static_cast<Transfer*>(user)->response;
  std::string_view line(text, bytes);
  while (!line.empty() && std::isspace(static_cast<unsigned char>(line.back())) != 0) line.remove_suffix(1);
  if (line.starts_with("HTTP/")) {  // of each answer: "100 Continue" comes before the one that counts
    response = {};
    const std::size_t space = line.find(' ');
    if (space != std::string_view::npos) response.status = std::atoi(std::string(line.substr(space + 1, 3)).c_str());
    return bytes;
  }
  const std::size_t colon = line.find(':');
  if (colon == std::string_view::npos) return bytes;
  std::string name(line.substr(0, colon));
  std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return std::tolower(c); });
  std::string_view value = line.substr(colon + 1);
  while (!value.empty() && value.front() == ' ') value.remove_prefix(1);
  response.headers[name] = std::string(value);
  return bytes;
}

std::size_t take_body(char* data, std::size_t, std::size_t bytes, void* user) {
  auto* transfer = static_cast<Transfer*>(user);
  try {
    const bool good = transfer->response.status >= 200 && transfer->response.status < 300;
    if (*transfer->receiver && good) {
      (*transfer->receiver)(transfer->response, std::as_bytes(std::span(data, bytes)));
      return bytes;
    }
    transfer->too_long = transfer->response.body.size() + bytes > HttpClient::kMostText;
    if (!transfer->too_long) transfer->response.body.append(data, bytes);
    return transfer->too_long ? 0 : bytes;
  } catch (...) {
    transfer->thrown = std::current_exception();
    return 0;
  }
}

std::size_t give_body(char* data, std::size_t, std::size_t room, void* user) {
  auto* transfer = static_cast<Transfer*>(user);
  if (transfer->request->file.empty()) {
    const std::string& body = transfer->request->body;
    const std::size_t bytes = std::min(room, body.size() - transfer->sent);
    std::copy_n(body.data() + transfer->sent, bytes, data);
    transfer->sent += bytes;
    return bytes;
  }
  const std::uint64_t bytes = std::min<std::uint64_t>(room, transfer->left);
  if (!transfer->file.read(data, static_cast<std::streamsize>(bytes))) return CURL_READFUNC_ABORT;
  transfer->left -= bytes;
  return bytes;
}

std::uint64_t body_bytes(const HttpRequest& request) {
  return request.file.empty() ? request.body.size() : request.size;
}

// libcurl reads none of these by itself; OpenSSL and clients in Python do.
const char* certificates() {
  for (const char* name : {"SSL_CERT_FILE", "CURL_CA_BUNDLE", "REQUESTS_CA_BUNDLE"}) {
    const char* value = std::getenv(name);
    if (value != nullptr && *value != '\0') return value;
  }
  return nullptr;
}

}  // namespace

std::string HttpResponse::header(const std::string& name) const {
  const auto found = headers.find(name);
  return found == headers.end() ? "" : found->second;
}

struct HttpClient::Handle {
  CURL* curl = nullptr;
  curl_slist* headers = nullptr;

  Handle() : curl(curl_library().init()) {}
  ~Handle() {
    curl_library().free_all(headers);
    curl_library().cleanup(curl);
  }
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;

  template <typename Value>
  void set(CURLoption option, Value value) const {
    curl_library().setopt(curl, option, value);
  }

  // What every request has; the kept connections stay.
  void prepare(Transfer& transfer) {
    curl_library().reset(curl);
    curl_library().free_all(headers);
    headers = nullptr;
    for (const std::string& header : transfer.request->headers)
      headers = curl_library().append(headers, header.c_str());
    headers = curl_library().append(headers, "User-Agent: sdtune");
    headers = curl_library().append(headers, "Expect:");
    set(CURLOPT_URL, transfer.request->url.c_str());
    set(CURLOPT_HTTPHEADER, headers);
    set(CURLOPT_NOSIGNAL, 1L);
    set(CURLOPT_FOLLOWLOCATION, 0L);
    set(CURLOPT_CONNECTTIMEOUT, kConnectSeconds);
    set(CURLOPT_LOW_SPEED_LIMIT, 1L);
    set(CURLOPT_LOW_SPEED_TIME, silence_seconds());
    if (const char* file = certificates()) set(CURLOPT_CAINFO, file);
    set(CURLOPT_HEADERFUNCTION, &take_header);
    set(CURLOPT_HEADERDATA, &transfer);
    set(CURLOPT_WRITEFUNCTION, &take_body);
    set(CURLOPT_WRITEDATA, &transfer);
    if (transfer.request->method == "HEAD") set(CURLOPT_NOBODY, 1L);
    const bool sends = transfer.request->method == "POST" || transfer.request->method == "PUT";
    if (!sends) return;
    set(CURLOPT_READFUNCTION, &give_body);
    set(CURLOPT_READDATA, &transfer);
    set(CURLOPT_UPLOAD, 1L);
    set(CURLOPT_CUSTOMREQUEST, transfer.request->method.c_str());
    set(CURLOPT_INFILESIZE_LARGE, static_cast<curl_off_t>(body_bytes(*transfer.request)));
  }
};

HttpClient::HttpClient() : handle_(std::make_unique<Handle>()) {}
HttpClient::~HttpClient() = default;

HttpResponse HttpClient::send(const HttpRequest& request, const BodyReceiver& receiver) {
  const Url url = parse_url(request.url);
  Transfer transfer;
  transfer.request = &request;
  transfer.receiver = &receiver;
  if (!request.file.empty()) {
    transfer.file.open(request.file, std::ios::binary);
    transfer.file.seekg(static_cast<std::streamoff>(request.offset));
    transfer.left = request.size;
    if (!transfer.file) throw StorageError(request.file.string(), "cannot be read");
  }
  handle_->prepare(transfer);
  const CURLcode code = curl_library().perform(handle_->curl);
  if (transfer.thrown) std::rethrow_exception(transfer.thrown);
  if (code == CURLE_OK) return std::move(transfer.response);
  if (transfer.too_long) throw NetworkError(url.authority, "sends an answer of more than 64 MiB where text is due");
  if (code == CURLE_ABORTED_BY_CALLBACK) throw StorageError(request.file.string(), "cannot be read to its end");
  if (code == CURLE_PEER_FAILED_VERIFICATION || code == CURLE_SSL_CACERT_BADFILE) {
    throw ConfigError(url.authority, std::string("has no valid certificate: ") + curl_library().strerror(code),
                      "install ca-certificates, or name the network's own certificates with SSL_CERT_FILE");
  }
  throw NetworkError(url.authority, std::string("the connection failed: ") + curl_library().strerror(code));
}

}  // namespace sdtune::app
