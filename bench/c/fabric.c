/* One-sided operations over libfabric alone: what a runtime over it can be expected to reach.
 *
 * Two processes, made by fork before libfabric is touched; they tell each other their addresses over a pair
 * of sockets. Process 0 acts on the memory of process 1, which does nothing but poll its queue, as a PE does
 * that waits. Asked for is what Pelago's provider asks for (fabric/src/ofi/domain.rs): endpoints of reliable
 * datagrams, messages, remote memory, delivery complete, no duties of memory registration, so that a key is
 * chosen here and an address is an offset; and atomics and progress by the provider, as a program needs them
 * whose targets may compute and which has no thread of its own to serve meanwhile. With `--calls` it does
 * without these two, as Pelago does over ofi_rxm, where it has such a thread.
 *
 * Invariant: an operation counts when it is complete: a put or an atomic when it is delivered, a get when the
 * data are here. Each row is checked once before it is timed. A block is `count` operations, or windows of
 * them, and `count` is found by running, so that a block takes about `block_us`. One line of JSON a row. */

#define _GNU_SOURCE
#include <fcntl.h>
#include <getopt.h>
#include <rdma/fabric.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { LARGE = 1 << 20, RATE_WINDOW = 64, BANDWIDTH_WINDOW = 8, BLOCKS_MIN = 5, BLOCKS_MAX = 10000, KEY = 7 };
enum { ADDRESS_MAX = 256, QUEUE = 1024 };
/* After so long a process ends in any case. */
enum { LIMIT_SECONDS = 120 };

static int me, link_socket, is_bound, is_patient, moves_in_calls;
static long block_us = 2000, blocks_max = 101, budget_ms = 300;
static const char *provider = "tcp;ofi_rxm", *domain_name, *wanted = "";
static char *namespaces[2];

static struct fi_info *info;
static struct fid_fabric *fabric;
static struct fid_domain *domain;
static struct fid_av *addresses;
static struct fid_cq *queue;
static struct fid_cntr *put_count;
static struct fid_ep *endpoint;
static struct fid_mr *region;
static fi_addr_t peer;
/* Operations whose completion the queue will tell, and puts that were started, which the counter counts. */
static long pending;
static uint64_t puts_started;
/* Room for libfabric's notes on each operation of a window. */
static struct fi_context2 contexts[RATE_WINDOW];

/* What the other process may reach: a word that says that all is over, a word for small operations, and room
 * for large ones. */
struct reach {
    volatile uint64_t is_over;
    uint64_t word;
    char large[LARGE];
};
static struct reach *own;
/* What is put, and where what is got goes: a place for each of a window. */
static char *large;

static double now_us(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1e6 + time.tv_nsec * 1e-3;
}

static void die(const char *what, long code)
{
    fprintf(stderr, "process %d: %s: %s\n", me, what, code < 0 ? fi_strerror((int)-code) : "refused");
    exit(2);
}

static void must(const char *what, long code)
{
    if (code != 0) {
        die(what, code < 0 ? code : 0);
    }
}

/* ---- Opening ------------------------------------------------------------------------------------------- */

/* Whether an offer is on the domain that is asked for, if one is. */
static int is_asked_for(const struct fi_info *offer)
{
    return domain_name == NULL || strcmp(offer->domain_attr->name, domain_name) == 0;
}

static void choose(void)
{
    struct fi_info *hints = fi_allocinfo();
    hints->ep_attr->type = FI_EP_RDM;
    hints->caps = FI_MSG | FI_RMA | FI_ATOMIC | FI_READ | FI_WRITE | FI_SEND | FI_RECV | FI_REMOTE_READ
                  | FI_REMOTE_WRITE | FI_MULTI_RECV;
    hints->mode = FI_CONTEXT | FI_CONTEXT2;
    hints->tx_attr->op_flags = FI_DELIVERY_COMPLETE;
    hints->tx_attr->msg_order = hints->rx_attr->msg_order = FI_ORDER_SAS;
    hints->domain_attr->data_progress = hints->domain_attr->control_progress =
        moves_in_calls ? FI_PROGRESS_MANUAL : FI_PROGRESS_AUTO;
    hints->caps &= moves_in_calls ? ~FI_ATOMIC : ~0ULL;
    hints->domain_attr->threading = FI_THREAD_SAFE;
    hints->domain_attr->resource_mgmt = FI_RM_ENABLED;
    hints->domain_attr->av_type = FI_AV_TABLE;
    hints->fabric_attr->prov_name = strdup(provider);
    must("fi_getinfo", fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, hints, &info));
    while (info != NULL && !is_asked_for(info)) {
        info = info->next;
    }
    if (info == NULL) {
        die("no such domain", 0);
    }
    fi_freeinfo(hints);
}

static void open_endpoint(void)
{
    choose();
    struct fi_av_attr av = {.type = FI_AV_TABLE, .count = 2};
    struct fi_cq_attr cq = {.size = QUEUE, .format = FI_CQ_FORMAT_DATA, .wait_obj = FI_WAIT_NONE};
    struct fi_cntr_attr counter = {.events = FI_CNTR_EVENTS_COMP, .wait_obj = FI_WAIT_NONE};
    must("fi_fabric", fi_fabric(info->fabric_attr, &fabric, NULL));
    must("fi_domain", fi_domain(fabric, info, &domain, NULL));
    must("fi_av_open", fi_av_open(domain, &av, &addresses, NULL));
    must("fi_cq_open", fi_cq_open(domain, &cq, &queue, NULL));
    must("fi_cntr_open", fi_cntr_open(domain, &counter, &put_count, NULL));
    must("fi_endpoint", fi_endpoint(domain, info, &endpoint, NULL));
    must("fi_ep_bind", fi_ep_bind(endpoint, &addresses->fid, 0));
    must("fi_ep_bind", fi_ep_bind(endpoint, &queue->fid, FI_TRANSMIT | FI_SELECTIVE_COMPLETION));
    must("fi_ep_bind", fi_ep_bind(endpoint, &queue->fid, FI_RECV));
    must("fi_ep_bind", fi_ep_bind(endpoint, &put_count->fid, FI_WRITE));
    must("fi_enable", fi_enable(endpoint));
    own = calloc(1, sizeof *own);
    large = malloc(BANDWIDTH_WINDOW * LARGE);
    memset(large, 1, BANDWIDTH_WINDOW * LARGE);
    const uint64_t access = FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE;
    must("fi_mr_reg", fi_mr_reg(domain, own, sizeof *own, access, 0, KEY, 0, &region, NULL));
}

/* Both tell each other their addresses, and know when the other one is ready. */
static void exchange(void)
{
    char mine[ADDRESS_MAX] = {0}, theirs[ADDRESS_MAX];
    size_t bytes = sizeof mine;
    must("fi_getname", fi_getname(&endpoint->fid, mine, &bytes));
    if (send(link_socket, mine, sizeof mine, 0) != sizeof mine
        || recv(link_socket, theirs, sizeof theirs, MSG_WAITALL) != sizeof theirs) {
        die("the other process is gone", 0);
    }
    if (fi_av_insert(addresses, theirs, 1, &peer, 0, NULL) != 1) {
        die("the address of the other process is none", 0);
    }
}

/* ---- Operations ---------------------------------------------------------------------------------------- */

static void rest(void)
{
    if (is_patient) {
        sched_yield();
    }
}

/* Takes what is complete. */
static void poll_queue(void)
{
    struct fi_cq_data_entry entries[16];
    const ssize_t count = fi_cq_read(queue, entries, 16);
    if (count > 0) {
        pending -= count;
    } else if (count == -FI_EAGAIN) {
        rest();
    } else {
        struct fi_cq_err_entry error = {0};
        fi_cq_readerr(queue, &error, 0);
        die("an operation failed", -(long)error.err);
    }
}

static void complete(void)
{
    while (pending > 0) {
        poll_queue();
    }
}

/* Once more while there is no room. */
#define START(call)                                                                       \
    do {                                                                                  \
        ssize_t code_;                                                                    \
        while ((code_ = (call)) == -FI_EAGAIN) {                                          \
            poll_queue();                                                                 \
        }                                                                                 \
        must(#call, code_);                                                               \
    } while (0)

static void put(const void *from, size_t bytes, uint64_t to, uint64_t flags, int place)
{
    const struct iovec local = {.iov_base = (void *)from, .iov_len = bytes};
    const struct fi_rma_iov remote = {.addr = to, .len = bytes, .key = KEY};
    const struct fi_msg_rma message = {.msg_iov = &local,
                                       .iov_count = 1,
                                       .addr = peer,
                                       .rma_iov = &remote,
                                       .rma_iov_count = 1,
                                       .context = &contexts[place]};
    START(fi_writemsg(endpoint, &message, flags | FI_DELIVERY_COMPLETE));
    pending += (flags & FI_COMPLETION) != 0;
    puts_started++;
}

static void get(void *to, size_t bytes, uint64_t from, int place)
{
    const struct iovec local = {.iov_base = to, .iov_len = bytes};
    const struct fi_rma_iov remote = {.addr = from, .len = bytes, .key = KEY};
    const struct fi_msg_rma message = {.msg_iov = &local,
                                       .iov_count = 1,
                                       .addr = peer,
                                       .rma_iov = &remote,
                                       .rma_iov_count = 1,
                                       .context = &contexts[place]};
    START(fi_readmsg(endpoint, &message, FI_COMPLETION));
    pending++;
}

static uint64_t fetch_add(uint64_t value)
{
    uint64_t old = 0;
    const struct fi_ioc operand = {.addr = &value, .count = 1};
    struct fi_ioc result = {.addr = &old, .count = 1};
    const struct fi_rma_ioc remote = {.addr = offsetof(struct reach, word), .count = 1, .key = KEY};
    const struct fi_msg_atomic message = {.msg_iov = &operand,
                                          .iov_count = 1,
                                          .addr = peer,
                                          .rma_iov = &remote,
                                          .rma_iov_count = 1,
                                          .datatype = FI_UINT64,
                                          .op = FI_SUM,
                                          .context = &contexts[0]};
    START(fi_fetch_atomicmsg(endpoint, &message, &result, NULL, 1, FI_COMPLETION | FI_DELIVERY_COMPLETE));
    pending++;
    complete();
    return old;
}

/* All puts are delivered, as the counter says, whose reading makes progress as well. */
static void wait_for_puts(void)
{
    while (fi_cntr_read(put_count) < puts_started) {
        rest();
    }
    complete();
}

/* ---- Rows ---------------------------------------------------------------------------------------------- */

static const uint64_t WORD = offsetof(struct reach, word), ROOM = offsetof(struct reach, large);

static void run_put(long count)
{
    for (uint64_t i = 0; i < (uint64_t)count; i++) {
        put(&i, sizeof i, WORD, FI_INJECT, 0);
        wait_for_puts();
    }
}

static void run_get(long count)
{
    for (uint64_t i = 0, value; i < (uint64_t)count; i++) {
        get(&value, sizeof value, WORD, 0);
        complete();
    }
}

static void run_fetch_add(long count)
{
    for (long i = 0; i < count; i++) {
        fetch_add(1);
    }
}

static void run_put_rate(long count)
{
    for (long i = 0; i < count; i++) {
        for (uint64_t j = 0; j < RATE_WINDOW; j++) {
            put(&j, sizeof j, ROOM + j * sizeof j, FI_INJECT, 0);
        }
        wait_for_puts();
    }
}

static void run_put_bandwidth(long count)
{
    for (long i = 0; i < count; i++) {
        for (int j = 0; j < BANDWIDTH_WINDOW; j++) {
            put(large, LARGE, ROOM, FI_COMPLETION, j);
        }
        wait_for_puts();
    }
}

static void run_get_bandwidth(long count)
{
    for (long i = 0; i < count; i++) {
        for (int j = 0; j < BANDWIDTH_WINDOW; j++) {
            get(large + j * LARGE, LARGE, ROOM, j);
        }
        complete();
    }
}

static int moves_words(void)
{
    uint64_t value = 41, read = 0;
    put(&value, sizeof value, WORD, FI_INJECT, 0);
    wait_for_puts();
    const uint64_t old = moves_in_calls ? 41 : fetch_add(1);
    get(&read, sizeof read, WORD, 0);
    complete();
    return old == 41 && read == (moves_in_calls ? 41 : 42);
}

static int moves_much(void)
{
    for (int i = 0; i < LARGE; i++) {
        large[i] = (char)(i * 31 >> 3);
    }
    run_put_bandwidth(1);
    memset(large, 0, BANDWIDTH_WINDOW * LARGE);
    run_get_bandwidth(1);
    int wrong = 0;
    for (int i = 0; i < BANDWIDTH_WINDOW * LARGE; i++) {
        wrong += large[i] != (char)(i % LARGE * 31 >> 3);
    }
    return wrong == 0;
}

static const struct row {
    const char *name;
    void (*run)(long count);
    int (*is_right)(void);
    size_t bytes;
    /* Operations of a count. */
    int window;
} ROWS[] = {
    {"put", run_put, moves_words, 8, 1},
    {"get", run_get, moves_words, 8, 1},
    {"fetch-add", run_fetch_add, moves_words, 8, 1},
    {"put-rate", run_put_rate, moves_words, 8, RATE_WINDOW},
    {"put-bandwidth", run_put_bandwidth, moves_much, LARGE, BANDWIDTH_WINDOW},
    {"get-bandwidth", run_get_bandwidth, moves_much, LARGE, BANDWIDTH_WINDOW},
};
enum { ROW_COUNT = sizeof ROWS / sizeof *ROWS };

static double block(const struct row *row, long count)
{
    const double start = now_us();
    row->run(count);
    return now_us() - start;
}

/* The number of runs that fill a block, and its time: the better of two, so that one interruption does not
 * make all blocks too short. */
static long calibrate(const struct row *row, double *time)
{
    row->run(1);
    for (long count = 1;;) {
        const double first = block(row, count), second = block(row, count);
        *time = first < second ? first : second;
        if (*time * 2 >= block_us) {
            return count;
        }
        const double factor = block_us / *time;
        count *= factor < 2 ? 2 : factor > 16 ? 16 : (long)factor;
    }
}

static int ascending(const void *left, const void *right)
{
    const double l = *(const double *)left, r = *(const double *)right;
    return (l > r) - (l < r);
}

static void measure(const struct row *row)
{
    static double times_ns[BLOCKS_MAX];
    if (!row->is_right()) {
        die(row->name, 0);
    }
    double time;
    const long count = calibrate(row, &time);
    const double fitting = budget_ms * 1e3 / time;
    const long blocks = fitting < BLOCKS_MIN ? BLOCKS_MIN : fitting > blocks_max ? blocks_max : (long)fitting;
    for (long i = 0; i < blocks; i++) {
        times_ns[i] = block(row, count) * 1e3 / count / row->window;
    }
    qsort(times_ns, blocks, sizeof *times_ns, ascending);
    const double median = (times_ns[(blocks - 1) / 2] + times_ns[blocks / 2]) / 2;
    printf("{\"operation\":\"%s\",\"bytes\":%zu,\"fabric\":\"%s on %s\",\"samples\":%ld,\"min\":%.3f,"
           "\"median\":%.3f}\n",
           row->name, row->bytes, info->fabric_attr->prov_name, info->domain_attr->name, blocks, times_ns[0],
           median);
}

static int is_wanted(const char *name)
{
    char *names = strdup(wanted), *rest_of_names = names;
    int is_named = *wanted == '\0';
    for (char *one; (one = strsep(&rest_of_names, ",")) != NULL;) {
        is_named |= strcmp(one, name) == 0;
    }
    free(names);
    return is_named;
}

/* ---- Both processes ------------------------------------------------------------------------------------ */

static void enter_namespace(const char *name)
{
    char path[256];
    snprintf(path, sizeof path, "/run/netns/%s", name);
    const int file = open(path, O_RDONLY);
    if (file < 0 || setns(file, CLONE_NEWNET) != 0) {
        perror(path);
        exit(2);
    }
    close(file);
}

/* Process `me` on the core of that number among those that it may use. */
static void bind_to_core(void)
{
    cpu_set_t allowed, one;
    CPU_ZERO(&one);
    must("sched_getaffinity", sched_getaffinity(0, sizeof allowed, &allowed));
    const int wanted_core = me % CPU_COUNT(&allowed);
    for (int core = 0, seen = 0; core < CPU_SETSIZE; core++) {
        if (CPU_ISSET(core, &allowed) && seen++ == wanted_core) {
            CPU_SET(core, &one);
        }
    }
    must("sched_setaffinity", sched_setaffinity(0, sizeof one, &one));
}

static void act(void)
{
    for (int i = 0; i < ROW_COUNT; i++) {
        if (is_wanted(ROWS[i].name) && !(moves_in_calls && ROWS[i].run == run_fetch_add)) {
            measure(&ROWS[i]);
            fflush(stdout);
        }
    }
    const uint64_t is_over = 1;
    put(&is_over, sizeof is_over, offsetof(struct reach, is_over), FI_INJECT, 0);
    wait_for_puts();
}

/* Polls, as long as process 0 is there. */
static void serve(void)
{
    while (own->is_over == 0) {
        poll_queue();
    }
}

static void part(void)
{
    if (namespaces[me] != NULL) {
        enter_namespace(namespaces[me]);
    }
    if (is_bound) {
        bind_to_core();
    }
    open_endpoint();
    exchange();
    me == 0 ? act() : serve();
    /* Nobody closes before the other one has done. */
    char done = 1;
    if (send(link_socket, &done, 1, MSG_NOSIGNAL) != 1 || recv(link_socket, &done, 1, 0) != 1) {
        die("the other process is gone", 0);
    }
    fi_close(&endpoint->fid);
    fi_close(&region->fid);
    fi_close(&put_count->fid);
    fi_close(&queue->fid);
    fi_close(&addresses->fid);
    fi_close(&domain->fid);
    fi_close(&fabric->fid);
}

static void read_arguments(int count, char **arguments)
{
    static const struct option options[] = {
        {"rows", required_argument, NULL, 'r'},      {"block-us", required_argument, NULL, 'u'},
        {"blocks", required_argument, NULL, 'b'},    {"budget-ms", required_argument, NULL, 'm'},
        {"provider", required_argument, NULL, 'p'},  {"domain", required_argument, NULL, 'd'},
        {"netns", required_argument, NULL, 'n'},     {"bind", no_argument, NULL, 'c'},
        {"yield", no_argument, NULL, 'y'},           {"calls", no_argument, NULL, 'a'},
        {NULL, 0, NULL, 0}};
    for (int name; (name = getopt_long(count, arguments, "", options, NULL)) != -1;) {
        switch (name) {
        case 'r': wanted = optarg; break;
        case 'u': block_us = atol(optarg); break;
        case 'b': blocks_max = atol(optarg) < BLOCKS_MAX ? atol(optarg) : BLOCKS_MAX; break;
        case 'm': budget_ms = atol(optarg); break;
        case 'p': provider = optarg; break;
        case 'd': domain_name = optarg; break;
        case 'n':
            namespaces[0] = strsep(&optarg, ",");
            namespaces[1] = optarg;
            break;
        case 'c': is_bound = 1; break;
        case 'y': is_patient = 1; break;
        case 'a': moves_in_calls = 1; break;
        default: die("an argument is unknown", 0);
        }
    }
}

int main(int count, char **arguments)
{
    int sockets[2];
    read_arguments(count, arguments);
    must("socketpair", socketpair(AF_UNIX, SOCK_STREAM, 0, sockets));
    const pid_t parent = getpid(), other = fork();
    me = other == 0 ? 1 : 0;
    link_socket = sockets[me];
    close(sockets[1 - me]);
    if (me == 1) {
        /* Ends with process 0, whatever becomes of that. */
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent) {
            return 2;
        }
    }
    alarm(LIMIT_SECONDS);
    part();
    if (me == 1) {
        return 0;
    }
    int status;
    waitpid(other, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 2;
}
