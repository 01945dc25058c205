// A small thread pool whose waits end in sleep.
//
// To wake a thread takes as long as a small task, so those who wait look for 100 us before they sleep, giving way to
// whoever else wants the core. Some schedulers wake a thread on the core of the one that wakes it and leave both there
// for many milliseconds: on Linux the pool's threads are kept off the caller's core.
//
// The calling thread works along with the pool and, between two tasks and while it waits, asks `poll` whether
// it should give up: that is how Ctrl-C and a deadline reach a running kernel. Tasks are meant to last a few
// milliseconds.
// What a task computes never depends on which thread runs it, so results repeat for any number of threads.
// After a fork the child starts with an empty pool and makes its own threads when it first needs them.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <vector>

#if !defined(_WIN32)
#include <pthread.h>
#endif
#if defined(__linux__)
#include <sched.h>
#endif

namespace bmrm {

struct Interrupted : std::runtime_error {
  Interrupted() : std::runtime_error("interrupted") {}
};

// Returns true when the caller asked to stop. The Python bindings install one that looks for signals.
using Poll = bool (*)();

inline Poll& poll_hook() {
  static Poll hook = nullptr;
  return hook;
}

using Steady = std::chrono::steady_clock;

// When this thread's computations have to give up; the hook compares. Each thread that solves has its own.
inline Steady::time_point& deadline() {
  static thread_local Steady::time_point at = Steady::time_point::max();
  return at;
}

// Asks the hook at most every 20 ms, because asking takes the interpreter's lock; sooner once the deadline is over, so
// that a sequence of kernels which take less than 20 ms each ends as well.
class Patience {
 public:
  void check() {
    if (is_over()) throw Interrupted();
  }
  bool is_over() {
    if (poll_hook() == nullptr) return false;
    const auto now = Steady::now();
    if (now < next_) return false;
    next_ = std::min(now + std::chrono::milliseconds(20), std::max(now, deadline()));
    return poll_hook()();
  }

 private:
  Steady::time_point next_ = std::min(Steady::now() + std::chrono::milliseconds(20), deadline());
};

class Pool {
 public:
  static Pool& instance() {
    std::call_once(once(), [] {
      current() = new Pool();
#if !defined(_WIN32)
      // The parent's threads do not exist in the child: leave their pool behind and start anew.
      pthread_atfork(nullptr, nullptr, [] { current() = new Pool(); });
#endif
    });
    return *current();
  }

  // Calls task(0) ... task(n_tasks - 1) on at most n_threads threads, this one included.
  void run(std::size_t n_tasks, int n_threads, const std::function<void(std::size_t)>& task) {
    if (n_tasks == 0) return;
    const auto helpers = static_cast<std::size_t>(
        std::max(0, std::min<int>(n_threads, static_cast<int>(std::min<std::size_t>(n_tasks, 1024))) - 1));
    Patience patience;
    if (helpers == 0) {
      for (std::size_t i = 0; i < n_tasks; ++i) {
        task(i);
        patience.check();
      }
      return;
    }
    auto job = std::make_shared<Job>(n_tasks, task);
    submit(job, helpers);
    job->work(&patience);
    job->finish(patience);
  }

 private:
  struct Job {
    Job(std::size_t n, const std::function<void(std::size_t)>& t) : n_tasks(n), task(t) {}

    void work(Patience* patience) {
      try {
        for (std::size_t i = next.fetch_add(1); i < n_tasks && !stop.load(); i = next.fetch_add(1)) {
          task(i);
          if (patience != nullptr) patience->check();
        }
      } catch (...) {
        std::lock_guard lock(mutex);
        if (!error) error = std::current_exception();
        stop = true;
      }
    }

    // Called by a helper: enters unless the job is closed, works, and tells the caller that it has left.
    void help() {
      {
        std::lock_guard lock(mutex);
        if (closed) return;
        ++inside;
      }
      work(nullptr);
      std::lock_guard lock(mutex);
      if (--inside == 0) left.notify_all();
    }

    void finish(Patience& patience) {
      std::unique_lock lock(mutex);
      closed = true;  // whoever has not started yet need not start: all tasks are taken
      if (inside > 0) {
        lock.unlock();
        watch([this] { return inside == 0; });
        lock.lock();
      }
      while (inside > 0) {
        left.wait_for(lock, std::chrono::milliseconds(20));
        if (inside == 0 || error) continue;
        lock.unlock();
        try {
          patience.check();
        } catch (...) {
          stop = true;
          lock.lock();
          error = std::current_exception();
          continue;
        }
        lock.lock();
      }
      if (error) std::rethrow_exception(error);
    }

    const std::size_t n_tasks;
    const std::function<void(std::size_t)>& task;
    std::atomic<std::size_t> next{0};
    std::atomic<bool> stop{false};
    std::mutex mutex;
    std::condition_variable left;
    std::atomic<std::size_t> inside{0};
    bool closed = false;
    std::exception_ptr error;
  };

  void submit(const std::shared_ptr<Job>& job, std::size_t helpers) {
    {
      std::lock_guard lock(mutex_);
      while (threads_.size() < helpers) {
        std::thread helper([this] { serve(); });
        threads_.push_back(helper.native_handle());
        helper.detach();
        avoided_ = -1;
      }
      keep_off_this_core();
      for (std::size_t i = 0; i < helpers; ++i) jobs_.push_back(job);
      waiting_ = jobs_.size();
    }
    if (helpers == 1) {
      wake_.notify_one();
    } else {
      wake_.notify_all();
    }
  }

  [[noreturn]] void serve() {
    std::unique_lock lock(mutex_);
    for (;;) {
      if (jobs_.empty()) {
        lock.unlock();
        watch([this] { return waiting_ > 0; });
        lock.lock();
      }
      wake_.wait(lock, [this] { return !jobs_.empty(); });
      const auto job = jobs_.back();
      jobs_.pop_back();
      waiting_ = jobs_.size();
      lock.unlock();
      job->help();
      lock.lock();
    }
  }

  template <class Ready>
  static void watch(Ready ready) {
    const auto end = Steady::now() + std::chrono::microseconds(100);
    while (!ready() && Steady::now() < end) std::this_thread::yield();
  }

  void keep_off_this_core() {
#if defined(__linux__)
    const int here = sched_getcpu();
    cpu_set_t cores;
    if (here == avoided_ || sched_getaffinity(0, sizeof cores, &cores) != 0) return;
    if (here < 0 || CPU_COUNT(&cores) < 2) return;
    CPU_CLR(here, &cores);
    for (const auto thread : threads_) pthread_setaffinity_np(thread, sizeof cores, &cores);
    avoided_ = here;
#endif
  }

  static std::once_flag& once() {
    static std::once_flag flag;
    return flag;
  }
  static Pool*& current() {
    static Pool* pool = nullptr;
    return pool;
  }

  std::mutex mutex_;
  std::condition_variable wake_;
  std::vector<std::shared_ptr<Job>> jobs_;
  std::atomic<std::size_t> waiting_{0};
  std::vector<std::thread::native_handle_type> threads_;
  int avoided_ = -1;  // the core that the threads are kept off; -1 if there are new ones
};

inline void parallel_for(std::size_t n_tasks, int n_threads, const std::function<void(std::size_t)>& task) {
  Pool::instance().run(n_tasks, n_threads, task);
}

}  // namespace bmrm
