/* A stand-in for `vllm serve MODEL --port N --host H --served-model-name NAME ...`, so that launching,
 * probing and stopping can be tested in milliseconds. VLLM_API_KEY guards /v1, as in vLLM. LIFECYCLE in the environment chooses the behaviour:
 *
 *   ok             serves (the default)            slow:N        listens after N seconds
 *   die            unsupported model, exit 1       dies-later:N  serves, exits with 0 after N seconds
 *   exit0          exits with 0 at once            unhealthy     /health is 503 forever
 *   portclash      the port is taken, exit 1       unlisted      /v1/models lists another name
 *   kv             KV cache too small, exit 1      mute          answers without a token, "abort"
 *   oom            takes memory until killed       deaf          runs, never listens
 *   holds:N        KV cache of N tokens: exit 1 when asked for more
 *   ends:N         model of N tokens: exit 1 when asked for more
 *   free:N         N percent of the device are free: exit 1 when asked for more
 *   leak           tells the variables API_TOKEN and OTHER_TOKEN, exit 1
 *   awake          refuses to sleep
 *   paced:N        streams its tokens, N milliseconds apart
 *   busy           /metrics counts a request while the file that BUSY names is there
 *
 * With VLLM_SERVER_DEV_MODE=1 it sleeps and wakes; asleep it completes nothing.
 * With --headless, a follower, it listens nowhere.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { MAX_NAMES = 8, MAX_REQUEST = 1 << 20, CONNECTION_SECONDS = 30, STREAMED_TOKENS = 8 };
static const double DEVICE_GIB = 80;
static const size_t OOM_STEP = 16u << 20, OOM_LIMIT = 2048u << 20;

static const char *mode = "ok"; /* LIFECYCLE up to the colon */
static int number;              /* and the number after it, such as seconds */

static const char *model = "model", *host = "0.0.0.0";
static const char *names[MAX_NAMES];
static int name_count, port = 8000, max_model_len = 2048, headless;
static double share = 0.9;
static int *asleep; /* of all processes, of which each request has one */

static int is(const char *name) { return strcmp(mode, name) == 0; }

static void say(const char *process, const char *level, const char *format, ...) {
  char stamp[32];
  time_t now = time(NULL);
  strftime(stamp, sizeof stamp, "%m-%d %H:%M:%S", localtime(&now));
  printf("(%s pid=%d) %s %s ", process, getpid(), level, stamp);
  va_list args;
  va_start(args, format);
  vprintf(format, args);
  va_end(args);
  putchar('\n');
}

/* ---- command line ---- */

/* The value of a flag in either form, or NULL where argv[*i] is another argument. */
static const char *value_of(const char *flag, char **argv, int *i) {
  size_t length = strlen(flag);
  if (strncmp(argv[*i], flag, length) != 0) return NULL;
  if (argv[*i][length] == '=') return argv[*i] + length + 1;
  return argv[*i][length] == '\0' && argv[*i + 1] ? argv[++*i] : NULL;
}

static void parse(char **argv) {
  int i = 1; /* the image's entry point may stand before a whole command */
  while (argv[i] && (strcmp(argv[i], "vllm") == 0 || strcmp(argv[i], "serve") == 0)) i++;
  if (argv[i] && argv[i][0] != '-') model = argv[i++];
  for (; argv[i]; i++) {
    const char *value;
    if (strcmp(argv[i], "--headless") == 0) headless = 1;
    else if ((value = value_of("--port", argv, &i))) port = atoi(value);
    else if ((value = value_of("--host", argv, &i))) host = value;
    else if ((value = value_of("--max-model-len", argv, &i))) max_model_len = atoi(value);
    else if ((value = value_of("--gpu-memory-utilization", argv, &i))) share = atof(value);
    else if ((value = value_of("--served-model-name", argv, &i))) {
      names[name_count++] = value;
      while (name_count < MAX_NAMES && argv[i + 1] && argv[i + 1][0] != '-') names[name_count++] = argv[++i];
    }
  }
  if (name_count == 0) names[name_count++] = model;
}

static void parse_mode(void) {
  char *text = getenv("LIFECYCLE");
  if (!text || !*text) return;
  mode = strdup(text);
  char *colon = strchr(mode, ':');
  if (!colon) return;
  *colon = '\0';
  number = atoi(colon + 1);
}

/* ---- failures at start ---- */

/* vLLM's last line never is the cause. */
static void engine_failure(const char *format, ...) {
  char cause[1024];
  va_list args;
  va_start(args, format);
  vsnprintf(cause, sizeof cause, format, args);
  va_end(args);
  say("EngineCore", "ERROR", "[core.py:1510] EngineCore failed to start.");
  say("EngineCore", "ERROR", "[core.py:1510] Traceback (most recent call last):");
  say("EngineCore", "ERROR", "[core.py:1510] %s", cause);
  puts("RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {}");
  exit(1);
}

static void socket_failure(int error) {
  puts("Traceback (most recent call last):");
  printf("OSError: [Errno %d] %s\n", error, strerror(error));
  exit(1);
}

static void take_all_memory(void) {
  for (size_t taken = 0; taken < OOM_LIMIT; taken += OOM_STEP) {
    char *block = malloc(OOM_STEP);
    if (!block) break;
    memset(block, 1, OOM_STEP);
  }
  exit(137); /* nobody set a limit: spare the host */
}

static void cache_too_small(int asked, int holds) {
  engine_failure("ValueError: To serve at least one request with the model's max seq len (%d), (2.00 GiB KV "
                 "cache is needed, which is larger than the available KV cache memory (1.00 GiB). Based on the "
                 "available memory, the estimated maximum model length is %d. Try increasing "
                 "`gpu_memory_utilization` (which also controls CPU memory on the CPU backend) or decreasing "
                 "`max_model_len` when initializing the engine.", asked, holds);
}

static void fail_at_start(void) {
  if (is("exit0")) exit(0);
  if (is("portclash")) socket_failure(EADDRINUSE);
  if (is("oom")) take_all_memory();
  if (is("die")) {
    usleep(200 * 1000);
    engine_failure("ValueError: Model architectures ['FooForCausalLM'] are not supported for now.");
  }
  if (is("leak")) {
    const char *one = getenv("API_TOKEN"), *other = getenv("OTHER_TOKEN");
    printf("headers: {'Authorization': 'Bearer %s'}\n", one ? one : "");
    engine_failure("ValueError: 401 for https://hub/?token=%s and %s", one ? one : "", other ? other : "");
  }
  if (is("kv")) cache_too_small(4096, 2048);
  if (is("holds") && max_model_len > number) cache_too_small(max_model_len, number);
  if (is("ends") && max_model_len > number)
    engine_failure("Value error, User-specified max_model_len (%d) is greater than the derived max_model_len "
                   "(max_position_embeddings=%d.0 or model_max_length=None in model's config.json).",
                   max_model_len, number);
  if (is("free") && share * 100 > number)
    engine_failure("ValueError: Free memory on device cuda:0 (%.2f/%.2f GiB) on startup is less than desired GPU "
                   "memory utilization (%g, %.2f GiB). Decrease GPU memory utilization or reduce GPU memory used "
                   "by other processes.", DEVICE_GIB * number / 100, DEVICE_GIB, share, DEVICE_GIB * share);
}

/* ---- HTTP ---- */

static void reply(int fd, const char *status, const char *format, ...) {
  static char body[1 << 16], head[256];
  va_list args;
  va_start(args, format);
  int size = vsnprintf(body, sizeof body, format, args);
  va_end(args);
  int head_size = snprintf(head, sizeof head,
                           "HTTP/1.1 %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n"
                           "Connection: close\r\n\r\n", status, size);
  if (write(fd, head, head_size) != head_size || write(fd, body, size) != size) _exit(1);
}

static void list_models(int fd) {
  static char list[1 << 15];
  int size = 0;
  for (int i = 0; i < name_count && size < (int)sizeof list; i++)
    size += snprintf(list + size, sizeof list - size,
                     "%s{\"id\":\"%s\",\"object\":\"model\",\"owned_by\":\"vllm\",\"root\":\"%s\",\"max_model_len\":%d}",
                     i ? "," : "", is("unlisted") ? "another-model" : names[i], model, max_model_len);
  reply(fd, "200 OK", "{\"object\":\"list\",\"data\":[%s]}", list);
}

/* The "model" of a request, JSON or a form: any of the served names, or none given. */
static int serves(const char *body) {
  char wanted[256];
  const char *key = strstr(body, "\"model\"");
  int found = key && (sscanf(key + 7, " : \"%255[^\"]", wanted) == 1 || sscanf(key + 7, " %255[^\r]", wanted) == 1);
  if (!found) return 1;
  for (int i = 0; i < name_count; i++)
    if (strcmp(names[i], wanted) == 0) return 1;
  return 0;
}

static void complete(int fd, const char *object, const char *message) {
  reply(fd, "200 OK",
        "{\"id\":\"cmpl-1\",\"object\":\"%s\",\"created\":%ld,\"model\":\"%s\",\"choices\":[{\"index\":0,%s,"
        "\"logprobs\":null,\"finish_reason\":\"%s\"}],"
        "\"usage\":{\"prompt_tokens\":1,\"completion_tokens\":%d,\"total_tokens\":%d}}",
        object, (long)time(NULL), names[0], message, is("mute") ? "abort" : "length", !is("mute"), 1 + !is("mute"));
}

/* A stream of tokens, some time apart, as chat and completion have it; then the figures. */
static void stream(int fd) {
  dprintf(fd, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n");
  for (int i = 0; i < STREAMED_TOKENS; i++) {
    if (i) usleep((useconds_t)number * 1000);
    dprintf(fd, "data: {\"choices\":[{\"index\":0,\"text\":\"ok \",\"delta\":{\"content\":\"ok \"}}]}\n\n");
  }
  dprintf(fd, "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":1,\"completion_tokens\":%d}}\n\ndata: [DONE]\n\n",
          STREAMED_TOKENS);
}

/* A form with a sound in it. vLLM answers so to anything that it cannot read as one. */
static void transcribe(int fd, const char *body, size_t size) {
  if (!memmem(body, size, "WAVEfmt ", 8))
    reply(fd, "400 Bad Request", "{\"error\":{\"message\":\"Invalid or unsupported audio file.\",\"code\":400}}");
  else if (is("mute")) reply(fd, "200 OK", "{\"text\":null}");
  else reply(fd, "200 OK", "{\"text\":\"ok\",\"usage\":{\"type\":\"duration\",\"seconds\":1}}");
}

/* A PNG of one pixel. */
static void draw(int fd) {
  reply(fd, "200 OK", "{\"created\":%ld,\"data\":[{\"b64_json\":\"%s\"}]}", (long)time(NULL), is("mute") ? "bm8gcGljdHVyZQ==" :
        "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGNgAAAAAgABSK+kcQAAAABJRU5ErkJggg==");
}

static int in_dev_mode(void) {
  const char *written = getenv("VLLM_SERVER_DEV_MODE");
  return written && atoi(written) != 0;
}

/* The development paths for sleeping; 0 = the path is another. */
static int answer_sleep(int fd, const char *path) {
  int falls = strcmp(path, "/sleep") == 0, wakes = strcmp(path, "/wake_up") == 0;
  if (falls && is("awake")) {
    reply(fd, "500 Internal Server Error", "{\"detail\":\"Sleep mode is not enabled.\"}");
    return 1;
  }
  if (strcmp(path, "/is_sleeping") == 0) {
    reply(fd, "200 OK", "{\"is_sleeping\":%s}", *asleep ? "true" : "false");
    return 1;
  }
  if (!falls && !wakes && strcmp(path, "/collective_rpc") != 0) return 0;
  if (falls || wakes) *asleep = falls;
  reply(fd, "200 OK", "%s", "");
  return 1;
}

static void answer(int fd, const char *path, const char *body, size_t size) {
  int mute = is("mute");
  if (in_dev_mode() && answer_sleep(fd, path)) return;
  if (*asleep && strstr(path, "completions")) {
    reply(fd, "503 Service Unavailable", "{\"detail\":\"The engine sleeps.\"}");
    return;
  }
  if (strcmp(path, "/metrics") == 0)
    reply(fd, "200 OK",
          "vllm:num_requests_running{engine=\"0\",model_name=\"%s\"} %d.0\n"
          "vllm:num_requests_waiting{engine=\"0\",model_name=\"%s\"} 0.0\n",
          names[0], is("busy") && access(getenv("BUSY"), F_OK) == 0, names[0]);
  else if (strcmp(path, "/health") == 0) reply(fd, is("unhealthy") ? "503 Service Unavailable" : "200 OK", "%s", "");
  else if (strcmp(path, "/version") == 0) reply(fd, "200 OK", "{\"version\":\"0.32.0\"}");
  else if (strcmp(path, "/v1/models") == 0) list_models(fd);
  else if (!serves(body))
    reply(fd, "404 Not Found", "{\"error\":{\"message\":\"The model does not exist.\",\"type\":\"NotFoundError\",\"code\":404}}");
  else if (is("paced") && strstr(path, "completions") && strstr(body, "\"stream\":true")) stream(fd);
  else if (strcmp(path, "/v1/completions") == 0)
    complete(fd, "text_completion", mute ? "\"text\":\"\"" : "\"text\":\"ok\"");
  else if (strcmp(path, "/v1/chat/completions") == 0)
    complete(fd, "chat.completion", mute ? "\"message\":{\"role\":\"assistant\",\"content\":\"\"}"
                                         : "\"message\":{\"role\":\"assistant\",\"content\":\"ok\"}");
  else if (strcmp(path, "/v1/embeddings") == 0)
    reply(fd, "200 OK",
          "{\"object\":\"list\",\"model\":\"%s\",\"data\":[{\"index\":0,\"object\":\"embedding\","
          "\"embedding\":[0.5,-0.5,0.5,-0.5]}],\"usage\":{\"prompt_tokens\":1,\"total_tokens\":1}}", names[0]);
  else if (strcmp(path, "/rerank") == 0 || strcmp(path, "/v1/rerank") == 0)
    reply(fd, "200 OK",
          "{\"id\":\"rerank-1\",\"model\":\"%s\",\"results\":[{\"index\":0,\"relevance_score\":0.9},"
          "{\"index\":1,\"relevance_score\":0.1}],\"usage\":{\"total_tokens\":2}}", names[0]);
  else if (strcmp(path, "/classify") == 0)
    reply(fd, "200 OK", "{\"object\":\"list\",\"model\":\"%s\",\"data\":[{\"index\":0,\"probs\":[0.75,0.25]}]}", names[0]);
  else if (strcmp(path, "/v1/audio/transcriptions") == 0) transcribe(fd, body, size);
  else if (strcmp(path, "/v1/images/generations") == 0) draw(fd);
  else reply(fd, "404 Not Found", "{\"detail\":\"Not Found\"}");
}

/* Whether a request may be answered: it carries the key, or needs none. */
static int has_key(const char *request, const char *path) {
  static char line[512];
  const char *key = getenv("VLLM_API_KEY");
  if (!key || !*key || strncmp(path, "/v1", 3) != 0) return 1;
  snprintf(line, sizeof line, "\r\nAuthorization: Bearer %s\r\n", key);
  return strcasestr(request, line) != NULL;
}

static void handle(int fd) {
  static char request[MAX_REQUEST + 1];
  char method[8], path[256];
  char *end = NULL, *length;
  size_t size = 0, wanted = 0;
  while (!end || size < wanted) {
    ssize_t got = read(fd, request + size, MAX_REQUEST - size);
    if (got <= 0) return;
    size += got;
    if (end || !(end = memmem(request, size, "\r\n\r\n", 4))) continue;
    length = strcasestr(request, "\r\nContent-Length:");
    wanted = end + 4 - request + (length && length < end ? strtoul(length + 17, NULL, 10) : 0);
  }
  if (sscanf(request, "%7s %255[^ ?]", method, path) != 2) return;
  printf("INFO:     \"%s %s HTTP/1.1\"\n", method, path);
  if (has_key(request, path)) answer(fd, path, end + 4, request + size - (end + 4));
  else reply(fd, "401 Unauthorized", "{\"error\":\"Unauthorized\"}");
}

/* ---- process ---- */

static void leave(int signal_number) {
  static const char last[] = "ERROR EngineCore died unexpectedly. Shutting down the API server.\n";
  if (signal_number == SIGALRM && write(STDOUT_FILENO, last, sizeof last - 1) < 0) _exit(1);
  _exit(0); /* vLLM exits with 0 even when its engine died */
}

/* Bound at once, but not yet listening: like vLLM, a slow start refuses connections. */
static int bind_port(void) {
  struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_port = htons(port)};
  struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_port = htons(port)};
  int use_v6 = inet_pton(AF_INET6, host, &v6.sin6_addr) == 1;
  const char *numeric = strcmp(host, "localhost") == 0 ? "127.0.0.1" : host;
  if (!use_v6 && inet_pton(AF_INET, numeric, &v4.sin_addr) != 1) socket_failure(EADDRNOTAVAIL);
  int listener = socket(use_v6 ? AF_INET6 : AF_INET, SOCK_STREAM, 0), on = 1;
  setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  struct sockaddr *address = use_v6 ? (struct sockaddr *)&v6 : (struct sockaddr *)&v4;
  if (bind(listener, address, use_v6 ? sizeof v6 : sizeof v4) != 0) socket_failure(errno);
  return listener;
}

static void serve(int listener) {
  signal(SIGCHLD, SIG_IGN); /* no zombies */
  for (;;) {
    int fd = accept(listener, NULL, NULL);
    if (fd >= 0 && fork() == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      signal(SIGALRM, SIG_DFL);
      alarm(CONNECTION_SECONDS);
      close(listener);
      handle(fd);
      exit(0);
    }
    if (fd >= 0) close(fd);
  }
}

int main(int argc, char **argv) {
  (void)argc;
  setvbuf(stdout, NULL, _IOLBF, 0);
  signal(SIGTERM, leave); /* as process 1 of a container it has no default action */
  signal(SIGINT, leave);
  asleep = mmap(NULL, sizeof *asleep, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (asleep == MAP_FAILED) exit(1);
  parse(argv);
  parse_mode();
  say("APIServer", "INFO", "[api_utils.py:347] vLLM version 0.32.0 (lifecycle stand-in, %s), model %s", mode, model);
  fail_at_start();
  if (headless) say("Worker", "INFO", "[serve.py:201] Launching vLLM headless multiproc executor");
  while (headless || is("deaf")) pause();
  int listener = bind_port();
  if (is("slow")) sleep((unsigned)number);
  if (listen(listener, 64) != 0) socket_failure(errno);
  say("APIServer", "INFO", "[entry.py:140] Starting vLLM server on http://%s:%d", host, port);
  puts("INFO:     Application startup complete.");
  signal(SIGALRM, leave);
  if (is("dies-later")) alarm((unsigned)number);
  serve(listener);
}
