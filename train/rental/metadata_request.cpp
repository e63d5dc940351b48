#include "train/rental/metadata_request.h"

#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstring>
#include <memory>
#include <stdexcept>

#include "model/base/error.h"

namespace sdtune::train {

namespace {

constexpr const char* kCloudsAddress = "169.254.169.254";
constexpr std::size_t kMostBytes = std::size_t{1} << 20;
constexpr int kSliceMs = 100;  // after which `cancelled` is read again

[[noreturn]] void no_answer(const std::string& why) {
  throw std::runtime_error(why);
}

class Socket {
 public:
  Socket(const addrinfo& address, std::chrono::steady_clock::time_point deadline, const std::atomic<bool>& cancelled)
      : file_(::socket(address.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)),
        deadline_(deadline),
        cancelled_(cancelled) {
    if (file_ < 0) no_answer(std::strerror(errno));
    if (::connect(file_, address.ai_addr, address.ai_addrlen) == 0) return;
    int fault = errno;
    if (fault == EINPROGRESS) {
      try {
        wait(POLLOUT);
      } catch (const std::runtime_error&) {
        ::close(file_);
        throw;
      }
      socklen_t length = sizeof(fault);
      ::getsockopt(file_, SOL_SOCKET, SO_ERROR, &fault, &length);
    }
    if (fault == 0) return;
    ::close(file_);
    no_answer(std::strerror(fault));
  }
  ~Socket() { ::close(file_); }
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;

  void send(const std::string& text) {
    for (std::size_t sent = 0; sent < text.size();) {
      wait(POLLOUT);
      const ssize_t count = ::send(file_, text.data() + sent, text.size() - sent, MSG_NOSIGNAL);
      if (count < 0 && errno != EAGAIN && errno != EINTR) no_answer(std::strerror(errno));
      if (count > 0) sent += static_cast<std::size_t>(count);
    }
  }

  // Appends what has come; false at the end.
  bool receive(std::string& text) {
    wait(POLLIN);
    char part[4096];
    const ssize_t count = ::recv(file_, part, sizeof(part), 0);
    if (count < 0 && errno != EAGAIN && errno != EINTR) no_answer(std::strerror(errno));
    if (count > 0) text.append(part, static_cast<std::size_t>(count));
    if (text.size() > kMostBytes) no_answer("the answer is too long");
    return count != 0;
  }

 private:
  void wait(short events) {
    for (;;) {
      if (cancelled_.load()) no_answer("cancelled");
      if (std::chrono::steady_clock::now() >= deadline_) no_answer("no answer in time");
      pollfd request = {file_, events, 0};
      if (::poll(&request, 1, kSliceMs) > 0) return;
    }
  }

  int file_;
  std::chrono::steady_clock::time_point deadline_;
  const std::atomic<bool>& cancelled_;
};

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::tolower(c); });
  return text;
}

// The value of a header, empty where it is absent; `head` is in lower case.
std::string header(const std::string& head, const std::string& name) {
  const std::size_t at = head.find("\r\n" + name + ":");
  if (at == std::string::npos) return {};
  const std::size_t begin = head.find_first_not_of(' ', at + name.size() + 3);
  return head.substr(begin, head.find("\r\n", begin) - begin);
}

std::size_t number(const std::string& text, int base) {
  std::size_t value = 0;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (status != std::errc() || end == text.data()) no_answer("the answer is not HTTP");
  return value;
}

// Whether `body` is whole; then it is the content alone. RFC 9112, section 6.
bool take_body(const std::string& head, std::string& body, bool at_end) {
  if (header(head, "transfer-encoding") == "chunked") {
    std::string content;
    for (std::size_t at = 0;;) {
      const std::size_t line = body.find("\r\n", at);
      if (line == std::string::npos) return false;
      const std::size_t length = number(body.substr(at, line - at), 16);
      if (length > kMostBytes || body.size() < line + 4 + length) {
        if (length == 0) break;
        return false;
      }
      if (length == 0) break;
      content += body.substr(line + 2, length);
      at = line + 4 + length;
    }
    body = content;
    return true;
  }
  const std::string length = header(head, "content-length");
  if (length.empty()) return at_end;
  const std::size_t bytes = number(length, 10);
  if (body.size() < bytes) return false;
  body.resize(bytes);
  return true;
}

MetadataAnswer read_answer(Socket& socket) {
  std::string text;
  for (bool open = true; open;) {
    open = socket.receive(text);
    const std::size_t end = text.find("\r\n\r\n");
    if (end == std::string::npos) continue;
    if (!text.starts_with("HTTP/1.") || text.size() < 12) no_answer("the answer is not HTTP");
    MetadataAnswer answer{static_cast<int>(number(text.substr(9, 3), 10)), text.substr(end + 4)};
    if (take_body(lower(text.substr(0, end + 2)), answer.body, !open)) return answer;
  }
  no_answer("the answer ends early");
}

}  // namespace

MetadataAddress parse_metadata_address(const std::string& text) {
  if (text.empty()) return {kCloudsAddress, "80"};
  const bool is_bracketed = text.front() == '[';
  const std::size_t host_end = is_bracketed ? text.find(']') : text.find(':');
  MetadataAddress address{text.substr(is_bracketed ? 1 : 0, host_end - (is_bracketed ? 1 : 0)), "80"};
  const std::string rest = host_end == std::string::npos ? "" : text.substr(host_end + (is_bracketed ? 1 : 0));
  int port = 80;
  if (!rest.empty()) {
    address.port = rest.substr(1);
    const char* end = address.port.data() + address.port.size();
    const auto [stop, status] = std::from_chars(address.port.data(), end, port);
    if (rest.front() != ':' || status != std::errc() || stop != end) port = 0;
  }
  const bool is_open = is_bracketed && host_end == std::string::npos;
  const bool has_foreign_sign = address.host.find_first_of(" /@?#[]\r\n") != std::string::npos;
  if (address.host.empty() || is_open || has_foreign_sign || port < 1 || port > 65535) {
    throw ConfigError("preemption_address", "is not HOST or HOST:PORT (got '" + text + "')");
  }
  return address;
}

MetadataAnswer ask_metadata(const MetadataAddress& address, const MetadataRequest& request, double seconds,
                            const std::atomic<bool>& cancelled) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (const int error = ::getaddrinfo(address.host.c_str(), address.port.c_str(), &hints, &found); error != 0) {
    no_answer(::gai_strerror(error));
  }
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> addresses(found, ::freeaddrinfo);
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(static_cast<int>(seconds * 1000));
  Socket socket(*addresses, deadline, cancelled);
  const bool is_ipv6 = address.host.find(':') != std::string::npos;
  std::string text = request.method + " " + request.path +
                     " HTTP/1.1\r\nHost: " + (is_ipv6 ? "[" + address.host + "]" : address.host) +
                     "\r\nConnection: close\r\n";
  if (request.method != "GET") text += "Content-Length: 0\r\n";
  for (const auto& [name, value] : request.headers) text += name + ": " + value + "\r\n";
  socket.send(text + "\r\n");
  return read_answer(socket);
}

}  // namespace sdtune::train
