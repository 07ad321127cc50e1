/* The HTTP side: connections, and for how long each may take. */
#include "http.h"

#include <jzx/loop.h>

#include <stdlib.h>
#include <sys/socket.h>

enum { HEADERS_MS = 10000 };

void jzc_client_allow(jzc_http *http, jzc_client *client, unsigned ms)
{
    if (client != NULL) {
        client->deadline_ns = jzx_loop_now(http->loop) + ms * UINT64_C(1000000);
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
    jzc_client_allow(http, client, HEADERS_MS);
}

static void client_remove(jzc_client *client)
{
    if (client != NULL) {
        *client->link = client->next;
        if (client->next != NULL) {
            client->next->link = client->link;
        }
        free(client);
    }
}

void jzc_client_notify(void *cls, struct MHD_Connection *connection, void **socket_context,
                       enum MHD_ConnectionNotificationCode code)
{
    if (code == MHD_CONNECTION_NOTIFY_STARTED) {
        client_add(cls, connection, socket_context);
    } else {
        client_remove(*socket_context);
        *socket_context = NULL;
    }
}

jzc_client *jzc_client_of(struct MHD_Connection *connection)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    return info == NULL ? NULL : info->socket_context;
}

void jzc_clients_look(jzc_http *http, uint64_t now)
{
    for (jzc_client *client = http->clients; client != NULL; client = client->next) {
        if (now > client->deadline_ns) {
            /* The library finds the connection at its end, and tells us that it is gone. */
            (void)shutdown(client->fd, SHUT_RDWR);
            client->deadline_ns = UINT64_MAX;
        }
    }
}
