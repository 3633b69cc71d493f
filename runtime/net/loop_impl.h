// loop_impl.h: what an io thread is made of. For the .cc files of net only: it includes Asio.
#pragma once

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <thread>

#include "runtime/net/loop.h"

namespace serin::net {

struct Loops::Loop {
  explicit Loop(size_t at) : index(at) {}

  const size_t index;
  boost::asio::io_context io{1};  // one thread runs it
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work = boost::asio::make_work_guard(io);
  std::thread thread;
};

/// The io thread this is, or null.
Loops::Loop* current_loop();

/// Runs `work` on the thread of `loop` and waits for it; at once where that is this thread, or where the thread has already ended.
void run_on(Loops::Loop& loop, const std::function<void()>& work);

}  // namespace serin::net
