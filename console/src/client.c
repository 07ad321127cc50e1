/* The HTTP side: connections, and for how long each may take.
 *
 * The library misses that a client has closed if that came along with its last bytes: it is told
 * once of both (edge-triggered), reads the bytes, and does not look again. So we listen for the end
 * ourselves. */
#include "http.h"

#include <jzx/loop.h>

#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>

enum { HEADERS_MS = 10000, EVENTS = 32 };
/* While others wait for a place, a client that asks nothing keeps its own for this long. */
static const uint64_t crowded_ns = 2000000000;

void jzc_client_allow(jzc_http *http, jzc_client *client, unsigned ms)
{
    if (client != NULL) {
        client->since_ns = jzx_loop_now(http->loop);
        client->deadline_ns = client->since_ns + ms * UINT64_C(1000000);
    }
}

static void client_add(jzc_http *http, struct MHD_Connection *connection, void **socket_context)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    jzc_client *client = info == NULL ? NULL : calloc(1, sizeof *client);
    *socket_context = client;
    if (client == NULL) {
        return; /* the library's own timeout has to do */
    }
    client->fd = info->connect_fd;
    client->next = http->clients;
    client->link = &http->clients;
    if (client->next != NULL) {
        client->next->link = &client->next;
    }
    http->clients = client;
    http->client_count++;
    struct epoll_event event = {.events = EPOLLRDHUP | EPOLLONESHOT, .data.ptr = client};
    (void)epoll_ctl(http->hangups, EPOLL_CTL_ADD, client->fd, &event); /* else by its deadline */
    jzc_client_allow(http, client, HEADERS_MS);
}

static void client_remove(jzc_http *http, jzc_client *client)
{
    if (client != NULL) {
        (void)epoll_ctl(http->hangups, EPOLL_CTL_DEL, client->fd, NULL);
        *client->link = client->next;
        if (client->next != NULL) {
            client->next->link = client->link;
        }
        http->client_count--;
        free(client);
    }
}

void jzc_client_notify(void *cls, struct MHD_Connection *connection, void **socket_context,
                       enum MHD_ConnectionNotificationCode code)
{
    if (code == MHD_CONNECTION_NOTIFY_STARTED) {
        client_add(cls, connection, socket_context);
    } else {
        client_remove(cls, *socket_context);
        *socket_context = NULL;
    }
}

jzc_client *jzc_client_of(struct MHD_Connection *connection)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    return info == NULL ? NULL : info->socket_context;
}

/* The library finds the connection at its end, and tells us that it is gone. */
static void client_cut(jzc_client *client)
{
    (void)shutdown(client->fd, SHUT_RDWR);
    client->deadline_ns = UINT64_MAX;
    client->gone = false;
}

void jzc_clients_look(jzc_http *http, uint64_t now)
{
    for (jzc_client *client = http->clients; client != NULL; client = client->next) {
        bool idles = http->full && !client->active && now - client->since_ns > crowded_ns;
        if (now > client->deadline_ns || (idles && client->deadline_ns != UINT64_MAX)) {
            client_cut(client);
        }
    }
}

void jzc_clients_hear(jzc_http *http)
{
    struct epoll_event events[EVENTS];
    int count = epoll_wait(http->hangups, events, EVENTS, 0);
    for (int i = 0; i < count; i++) {
        jzc_client *client = events[i].data.ptr;
        client->gone = true;
    }
}

void jzc_clients_part(jzc_http *http)
{
    for (jzc_client *client = http->clients; client != NULL; client = client->next) {
        if (client->gone && (!client->active || client->receiving)) {
            client_cut(client);
        }
    }
}
