/* A bare libfabric client that belongs to no job: it connects to endpoints of ofi_rxm over tcp at the addresses
 * given, tries to read and to write the first words of their memory under every key that it is given, and sends short
 * and long messages. It prints what succeeded: `keys N reads N writes N atomics N messages N`.
 *
 * intruder PORT[,PORT...] < keys, one decimal number a line; all ports are of 127.0.0.1. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <rdma/fabric.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define LIMIT_SECONDS 10

static struct fid_fabric *fabric;
static struct fid_domain *domain;
static struct fid_av *av;
static struct fid_cq *queue;
static struct fid_ep *ep;

static void check(const char *what, long code) {
    if (code == 0) return;
    fprintf(stderr, "intruder: %s: %s\n", what, fi_strerror((int)-code));
    exit(2);
}

/* Waits for the end of one operation: whether it succeeded. */
static int has_succeeded(const char *what) {
    struct fi_cq_entry entry;
    struct fi_cq_err_entry error;
    time_t start = time(NULL);
    for (;;) {
        ssize_t count = fi_cq_read(queue, &entry, 1);
        if (count == 1) return 1;
        if (count == -FI_EAVAIL) {
            memset(&error, 0, sizeof error);
            fi_cq_readerr(queue, &error, 0);
            return 0;
        }
        if (count != -FI_EAGAIN || time(NULL) - start > LIMIT_SECONDS) {
            fprintf(stderr, "intruder: waited in vain for %s\n", what);
            exit(2);
        }
    }
}

/* Starts an operation, as often as it takes, and waits for its end. */
#define TRY(what, call) ({                                                          \
    ssize_t code;                                                                   \
    time_t start = time(NULL);                                                      \
    struct fi_cq_entry ignored;                                                     \
    while ((code = (call)) == -FI_EAGAIN && time(NULL) - start <= LIMIT_SECONDS)    \
        (void)fi_cq_read(queue, &ignored, 0);                                       \
    if (code == -FI_EAGAIN) check(what, code);                                      \
    code == 0 && has_succeeded(what);                                               \
})

/* A new endpoint, as a target closes the connection of an endpoint that has used a wrong key: its address for the
 * endpoint at a port. */
static fi_addr_t begin(struct fi_info *info, const char *port) {
    struct fi_av_attr av_attr = {.type = FI_AV_TABLE};
    struct fi_cq_attr cq_attr = {.format = FI_CQ_FORMAT_CONTEXT, .size = 64};
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(port))};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    fi_addr_t target;
    check("fi_av_open", fi_av_open(domain, &av_attr, &av, NULL));
    check("fi_cq_open", fi_cq_open(domain, &cq_attr, &queue, NULL));
    check("fi_endpoint", fi_endpoint(domain, info, &ep, NULL));
    check("fi_ep_bind", fi_ep_bind(ep, &av->fid, 0));
    check("fi_ep_bind", fi_ep_bind(ep, &queue->fid, FI_TRANSMIT | FI_RECV));
    check("fi_enable", fi_enable(ep));
    if (fi_av_insert(av, &address, 1, &target, 0, NULL) != 1) exit(2);
    return target;
}

static void end(void) {
    fi_close(&ep->fid);
    fi_close(&queue->fid);
    fi_close(&av->fid);
}

int main(int argc, char **argv) {
    if (argc != 2) return 2;
    static char buffer[1 << 20];
    static uint64_t keys[1 << 16];
    size_t key_count = 0;
    while (key_count < sizeof keys / sizeof *keys && scanf("%lu", &keys[key_count]) == 1) key_count++;

    struct fi_info *hints = fi_allocinfo(), *info;
    hints->ep_attr->type = FI_EP_RDM;
    hints->caps = FI_MSG | FI_RMA | FI_ATOMIC;
    hints->domain_attr->mr_mode = 0;
    hints->fabric_attr->prov_name = strdup("tcp;ofi_rxm");
    check("fi_getinfo", fi_getinfo(FI_VERSION(1, 9), "127.0.0.1", NULL, FI_SOURCE, hints, &info));
    check("fi_fabric", fi_fabric(info->fabric_attr, &fabric, NULL));
    check("fi_domain", fi_domain(fabric, info, &domain, NULL));

    size_t reads = 0, writes = 0, atomics = 0, messages = 0;
    for (char *port = strtok(argv[1], ","); port; port = strtok(NULL, ",")) {
        for (size_t i = 0; i < key_count; i++) {
            struct iovec iov = {buffer, 8};
            struct fi_rma_iov remote = {.addr = 0, .len = 8, .key = keys[i]};
            struct fi_ioc operand = {buffer, 1};
            struct fi_rma_ioc word = {.addr = 0, .count = 1, .key = keys[i]};
            struct fi_msg_rma rma = {&iov, NULL, 1, begin(info, port), &remote, 1, NULL, 0};
            memset(buffer, 0xEE, sizeof buffer);
            writes += TRY("a write", fi_writemsg(ep, &rma, FI_COMPLETION | FI_DELIVERY_COMPLETE));
            end();
            rma.addr = begin(info, port);
            reads += TRY("a read", fi_readmsg(ep, &rma, FI_COMPLETION));
            end();
            if (i > 0) continue;
            struct fi_msg_atomic atomic = {&operand, NULL, 1, begin(info, port), &word, 1, FI_UINT64, FI_SUM, NULL, 0};
            atomics += TRY("an atomic", fi_atomicmsg(ep, &atomic, FI_COMPLETION | FI_DELIVERY_COMPLETE));
            end();
        }
        /* What looks like the job's own messages, and what does not: of all lengths. */
        for (size_t i = 0; i < 40; i++) {
            size_t bytes = i < 32 ? i : sizeof buffer - i;
            fi_addr_t target = begin(info, port);
            memset(buffer, bytes % 2 ? 0 : (int)bytes, sizeof buffer);
            messages += TRY("a message", fi_send(ep, buffer, bytes, NULL, target, NULL));
            end();
        }
    }
    printf("keys %zu reads %zu writes %zu atomics %zu messages %zu\n", key_count, reads, writes, atomics, messages);
    return 0;
}
