#include "train/rental/metadata_request.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <stdexcept>
#include <thread>

#include "model/base/error.h"

namespace sdtune::train {
namespace {

// Answers one connection with these bytes, a few at a time, and keeps what it was asked.
class OneAnswer {
 public:
  explicit OneAnswer(std::string answer) : answer_(std::move(answer)), socket_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof(address);
    auto* plain = reinterpret_cast<sockaddr*>(&address);
    EXPECT_EQ(::bind(socket_, plain, length), 0);
    EXPECT_EQ(::listen(socket_, 1), 0);
    EXPECT_EQ(::getsockname(socket_, plain, &length), 0);
    port = std::to_string(ntohs(address.sin_port));
    thread_ = std::thread([this] { serve(); });
  }
  ~OneAnswer() {
    thread_.join();
    ::close(socket_);
  }
  std::string port, asked;

 private:
  void serve() {
    const int file = ::accept(socket_, nullptr, nullptr);
    char part[4096];
    while (asked.find("\r\n\r\n") == std::string::npos) {
      const ssize_t count = ::read(file, part, sizeof(part));
      if (count <= 0) break;
      asked.append(part, static_cast<std::size_t>(count));
    }
    for (std::size_t at = 0; at < answer_.size(); at += 7) {
      if (::send(file, answer_.data() + at, std::min<std::size_t>(7, answer_.size() - at), MSG_NOSIGNAL) < 0) break;
    }
    ::close(file);
  }

  std::string answer_;
  int socket_;
  std::thread thread_;
};

MetadataAnswer ask(const std::string& answer, std::string* asked = nullptr) {
  const std::atomic<bool> never = false;
  OneAnswer server(answer);
  const MetadataAnswer got =
      ask_metadata({"127.0.0.1", server.port}, {"PUT", "/a/path", {{"A-Header", "its value"}}}, 20, never);
  if (asked != nullptr) *asked = server.asked;
  return got;
}

TEST(MetadataRequest, SendsMethodPathAndHeaders) {
  std::string asked;
  const MetadataAnswer got = ask("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\ntoken", &asked);
  EXPECT_EQ(got.status, 200);
  EXPECT_EQ(got.body, "token");
  EXPECT_EQ(asked.substr(0, asked.find('\r')), "PUT /a/path HTTP/1.1");
  EXPECT_NE(asked.find("\r\nHost: 127.0.0.1\r\n"), std::string::npos);
  EXPECT_NE(asked.find("\r\nA-Header: its value\r\n"), std::string::npos);
}

TEST(MetadataRequest, ReadsEveryKindOfBody) {
  EXPECT_EQ(ask("HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n").status, 404);
  EXPECT_EQ(ask("HTTP/1.0 200 OK\r\nServer: x\r\n\r\nto the end").body, "to the end");
  EXPECT_EQ(
      ask("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nchunk\r\n8;x=y\r\ns of two\r\n0\r\n\r\n").body,
      "chunks of two");
}

TEST(MetadataRequest, RefusesWhatIsNoAnswer) {
  for (const char* answer :
       {"", "SSH-2.0-OpenSSH\r\n\r\n", "HTTP/1.1 abc\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nshort",
        "HTTP/1.1 200 OK\r\nContent-Length: -3\r\n\r\nshort",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nchu"}) {
    EXPECT_THROW(ask(answer), std::runtime_error) << answer;
  }
  EXPECT_THROW(ask("HTTP/1.1 200 OK\r\n\r\n" + std::string(2 << 20, 'x')), std::runtime_error);
}

TEST(MetadataRequest, EndsWhenCancelled) {
  const std::atomic<bool> cancelled = true;
  OneAnswer server("");
  EXPECT_THROW(ask_metadata({"127.0.0.1", server.port}, {}, 1e6, cancelled), std::runtime_error);
}

TEST(MetadataRequest, ReadsAddresses) {
  const auto read = [](const std::string& text) {
    const MetadataAddress address = parse_metadata_address(text);
    return address.host + "|" + address.port;
  };
  EXPECT_EQ(read(""), "169.254.169.254|80");
  EXPECT_EQ(read("metadata.google.internal"), "metadata.google.internal|80");
  EXPECT_EQ(read("127.0.0.1:8080"), "127.0.0.1|8080");
  EXPECT_EQ(read("[fd00:ec2::254]:81"), "fd00:ec2::254|81");
  EXPECT_EQ(read("[fd00:ec2::254]"), "fd00:ec2::254|80");
  for (const char* wrong :
       {":80", "host:", "host:0", "host:65536", "host:8a", "http://host", "a b", "h\r\nX: y", "[::1", "[::1]80"}) {
    EXPECT_THROW(parse_metadata_address(wrong), ConfigError) << wrong;
  }
}

}  // namespace
}  // namespace sdtune::train
