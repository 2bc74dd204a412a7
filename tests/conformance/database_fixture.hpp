// Shared by the fixtures of databases, where the locks of some strategies end with the client's session.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

#include "server_fixture.hpp"

namespace dlock::conformance {

class DatabaseFixture : public ServerFixture {
 public:
  // Of clients that will be killed, numbered from 0.
  [[nodiscard]] static std::string mortal_user(std::size_t number) { return "mortal_" + std::to_string(number); }

  [[nodiscard]] std::string url() const override { return url_at(port_, parameters_); }
  [[nodiscard]] Client make_client(ClientOptions options, Link link) override {
    const std::string parameters = parameters_ + (in_session_ ? lease_of(link) : "");
    if (link == Link::disturbed) return connect(url_at(proxy_.port(), parameters), std::move(options));
    // A client that will be killed does not wait long to close.
    if (!in_session_ || options.close_timeout >= ClientOptions().close_timeout) {
      return connect(url_at(port_, parameters), std::move(options));
    }
    const Mortal& mortal = mortal_.emplace_back(Mortal{.user = mortal_user(mortal_.size()), .way = way_to({port_})});
    create_user(mortal.user);
    std::string whole = url_at(mortal.way.front()->port(), parameters);
    const std::size_t from = whole.find("//") + 2;
    whole.replace(from, whole.find('@') - from, mortal.user + ":" + mortal.user);
    return connect(whole, std::move(options));
  }
  [[nodiscard]] std::optional<Missing> missing(Feature feature) const override {
    if (feature == Feature::kill_session && !in_session_) {
      return Missing{Missing::Kind::not_applicable, "there is no session: every lock has a lease of its own"};
    }
    return ServerFixture::missing(feature);
  }
  void kill_session(Client& client) override {
    const auto mortal = std::find_if(mortal_.begin(), mortal_.end(), [&](const Mortal& each) {
      return client.url().find(addresses_of(each.way) + "/") != std::string::npos;
    });
    if (mortal == mortal_.end()) throw std::logic_error("this client was not made to die");
    cut_off(mortal->way);
    end_sessions_of(mortal->user);
  }
  void cut() override {
    proxy_.refuse(true);
    // A server that noticed would free the locks of a session at once, perhaps before their holder knows.
    proxy_.sever();
  }
  void heal() override {
    proxy_.end_severed();
    proxy_.refuse(false);
  }

 protected:
  // Clients connect to this port with these parameters of URLs.
  DatabaseFixture(std::uint16_t port, std::string parameters, bool in_session)
      : ServerFixture(way_to({port})),
        proxy_(*disturbed().front()),
        port_(port),
        parameters_(std::move(parameters)),
        in_session_(in_session) {}

  [[nodiscard]] virtual std::string url_at(std::uint16_t port, const std::string& parameters) const = 0;
  // Its password is its name. The other clients can use the objects that it creates.
  virtual void create_user(const std::string& name) = 0;
  // Returns when the server has ended them.
  virtual void end_sessions_of(const std::string& user) = 0;

  rig::TcpProxy& proxy_;

 private:
  // A client that will be killed has its own path, so that it can be cut off for good, and its own user, by which the
  // server distinguishes its sessions.
  struct Mortal {
    std::string user;
    Way way;
  };

  // A lease that lasts while a busy machine starts that many processes of the server; tests wait for the end of one
  // that is cut off.
  [[nodiscard]] static const char* lease_of(Link link) { return link == Link::disturbed ? "&lease=3s" : "&lease=8s"; }

  const std::uint16_t port_;
  const std::string parameters_;
  const bool in_session_;
  std::deque<Mortal> mortal_;
};

}  // namespace dlock::conformance
