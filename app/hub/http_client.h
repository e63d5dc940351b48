// HTTP by libcurl, for fetch and push. What else connects to another machine: ranks (train/dist), and the question to a
// cloud's metadata service (train/rental).
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace sdtune::app {

struct HttpRequest {
  std::string method = "GET";  // GET, HEAD, POST, PUT
  std::string url;             // http or https
  std::vector<std::string> headers = {};
  std::string body = {};               // of POST and PUT
  std::filesystem::path file = {};     // not empty: the body is this part of the file
  std::uint64_t offset = 0, size = 0;  // of that part
};

struct HttpResponse {
  int status = 0;
  std::map<std::string, std::string> headers;  // names in lower case
  std::string body;                            // at most kMostText bytes of it
  std::string url;                             // that answered, for one that may follow redirects

  // The header's value; empty where there is none.
  std::string header(const std::string& name) const;
};

// What takes the body of a 2xx answer piece by piece, once its head is known. It may throw; the transfer then ends with
// what it threw.
using BodyReceiver = std::function<void(const HttpResponse& head, std::span<const std::byte> bytes)>;

class HttpClient {
 public:
  static constexpr std::size_t kMostText = 64 << 20;

  // Throws ConfigError where libcurl is not installed.
  HttpClient();
  ~HttpClient();
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;

  // One request, without following redirects and without a retry; any status is an answer. Without a receiver the body
  // goes to HttpResponse::body. Connections are kept. Throws NetworkError naming host and cause: no connection, no
  // bytes for 30 s (HF_HUB_DOWNLOAD_TIMEOUT in seconds), an answer that ends before its length; ConfigError for
  // another scheme and for a certificate that is not valid; StorageError where `file` cannot be read.
  HttpResponse send(const HttpRequest& request, const BodyReceiver& receiver = nullptr);

 private:
  struct Handle;
  std::unique_ptr<Handle> handle_;
};

}  // namespace sdtune::app
