/* A raw TCP socket between two namespaces that polls: what no library can be expected to beat. The first
 * process is in the namespace whose address is the first argument, the second in that of the second one. */

#define _GNU_SOURCE
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "net_rows.h"

static int connection;

static void receive(size_t bytes)
{
    for (size_t got = 0; got < bytes;) {
        const ssize_t count = recv(connection, target + got, bytes - got, MSG_DONTWAIT);
        if (count == 0) {
            die("the other process has gone");
        }
        got += count > 0 ? count : 0;
    }
}

static void send_all(size_t bytes)
{
    for (size_t sent = 0; sent < bytes;) {
        const ssize_t count = send(connection, source + sent, bytes - sent, MSG_DONTWAIT);
        sent += count > 0 ? count : 0;
    }
}

static void meet(void)
{
    send_all(1);
    receive(1);
}

static void round_trip(size_t bytes)
{
    if (rank == 0) {
        send_all(bytes);
        receive(bytes);
    } else {
        receive(bytes);
        send_all(bytes);
    }
}

static void window(size_t bytes)
{
    for (int i = 0; i < WINDOW; i++) {
        if (rank == 0) {
            send_all(bytes);
        } else {
            receive(bytes);
        }
    }
    if (rank == 0) {
        receive(1);
    } else {
        send_all(1);
    }
}

/* The least that a barrier, and an exchange of small data, can take: both send, and then receive. */
static void collective(enum operation what, size_t bytes)
{
    (void)what;
    send_all(bytes);
    receive(bytes);
}

static void enter(const char *namespace)
{
    char path[256];
    snprintf(path, sizeof path, "/run/netns/%s", namespace);
    const int file = open(path, O_RDONLY);
    if (file < 0 || setns(file, CLONE_NEWNET) != 0) {
        die("cannot enter the namespace");
    }
}

static void await_partner(int listener, const struct sockaddr_in *address)
{
    const int on = 1;
    if (rank == 0) {
        connection = accept(listener, NULL, NULL);
    } else {
        connection = socket(AF_INET, SOCK_STREAM, 0);
        if (connect(connection, (const struct sockaddr *)address, sizeof *address) != 0) {
            die("cannot connect");
        }
    }
    setsockopt(connection, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

int main(int count, char **arguments)
{
    if (count != 4) {
        die("usage: raw ADDRESS NAMESPACE NAMESPACE");
    }
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t length = sizeof address;
    inet_pton(AF_INET, arguments[1], &address.sin_addr);
    ranks = 2;
    source = calloc(ranks, BYTES_MAX);
    target = calloc(ranks, BYTES_MAX);
    enter(arguments[2]);
    const int listener = socket(AF_INET, SOCK_STREAM, 0);
    if (bind(listener, (struct sockaddr *)&address, sizeof address) != 0 || listen(listener, 1) != 0) {
        die("cannot listen");
    }
    getsockname(listener, (struct sockaddr *)&address, &length);
    const pid_t child = fork();
    rank = child == 0;
    if (rank == 1) {
        enter(arguments[3]);
    }
    await_partner(listener, &address);
    write_all();
    for (int s = 0; s < 2; s++) {
        const size_t bytes = s == 0 ? 8 : 1024;
        MEASURE("half-round-trip", bytes, 200, 2, round_trip(bytes));
    }
    MEASURE("bandwidth", (size_t)64 << 10, 20, WINDOW, window(64 << 10));
    MEASURE("bandwidth", (size_t)1 << 20, 2, WINDOW, window(1 << 20));
    MEASURE("barrier", (size_t)0, 200, 1, collective(BARRIER, 8));
    MEASURE("put-quiet", (size_t)8, 200, 1, round_trip(8));
    MEASURE("get", (size_t)8, 200, 1, round_trip(8));
    if (rank == 0) {
        waitpid(child, NULL, 0);
    }
    return 0;
}
