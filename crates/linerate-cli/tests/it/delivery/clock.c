/* A clock that can be set while a program runs. When preloaded, it adds the number of seconds in
 * the first eight bytes of the file CLOCK_FILE to the time of day. It calls the kernel directly, so
 * that allocators may ask for the time before anything is initialized. Monotonic clocks are not
 * changed. */

#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static const volatile int64_t right = 0;
static const volatile int64_t *ahead_s = &right;

__attribute__((constructor)) static void open_file(void) {
  const char *name = getenv("CLOCK_FILE");
  int file = name == NULL ? -1 : open(name, O_RDONLY | O_CLOEXEC);
  if (file < 0) {
    abort();
  }
  void *mapped = mmap(NULL, sizeof(int64_t), PROT_READ, MAP_SHARED, file, 0);
  if (mapped == MAP_FAILED) {
    abort();
  }
  close(file);
  ahead_s = mapped;
}

int clock_gettime(clockid_t clock, struct timespec *now) {
  int result = (int)syscall(SYS_clock_gettime, clock, now);
  if (result == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) {
    now->tv_sec += *ahead_s;
  }
  return result;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
  struct timespec exact;
  (void)zone;
  int result = clock_gettime(CLOCK_REALTIME, &exact);
  now->tv_sec = exact.tv_sec;
  now->tv_usec = exact.tv_nsec / 1000;
  return result;
}

time_t time(time_t *also) {
  struct timespec exact;
  clock_gettime(CLOCK_REALTIME, &exact);
  if (also != NULL) {
    *also = exact.tv_sec;
  }
  return exact.tv_sec;
}
