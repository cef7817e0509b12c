"""The peer of the pipe's benchmark: a Channels consumer that a Celery task feeds by group_send.

`CAPACITY` is the layer's, 0 for its default; `LAYER` the Redis address.
"""

from __future__ import annotations

import os
import time
from typing import Any, cast

from asgiref.sync import async_to_sync
from celery import Celery
from channels.generic.websocket import AsyncJsonWebsocketConsumer
from channels.layers import get_channel_layer
from channels.routing import URLRouter
from django.conf import settings
from django.urls import path

LAYER = os.environ.get("LAYER", "")
CAPACITY = int(os.environ.get("CAPACITY", "0"))
layer_config: dict[str, Any] = {"hosts": [LAYER]}
if CAPACITY:
    layer_config["capacity"] = CAPACITY
if not settings.configured:
    settings.configure(
        CHANNEL_LAYERS={
            "default": {
                "BACKEND": "channels_redis.core.RedisChannelLayer",
                "CONFIG": layer_config,
            }
        }
    )
BROKER = LAYER.replace("unix://", "redis+socket://") or "memory://"
app = Celery("group_send", broker=BROKER)
app.conf.task_ignore_result = True


class Consumer(AsyncJsonWebsocketConsumer):
    async def connect(self) -> None:
        await self.channel_layer.group_add("job", self.channel_name)
        await self.accept()
        await self.send_json({"op": "welcome"})

    async def disconnect(self, code: int) -> None:
        await self.channel_layer.group_discard("job", self.channel_name)

    async def event(self, message: dict[str, Any]) -> None:
        await self.send_json({"op": "ev", "events": [message["event"]]})


application = URLRouter([path("ws/v1", cast(Any, Consumer.as_asgi()))])


@app.task(name="talk")  # type: ignore[untyped-decorator]
def talk(events: int, wait_s: float) -> None:
    """The same events as the kind `pipe.talk`, then an end."""
    send = async_to_sync(cast(Any, get_channel_layer()).group_send)
    for step in range(events + 1):
        event = {
            "id": f"1-{step + 1}",
            "job": "01m8q9qpfj682t9yhg36",
            "type": "metric" if step < events else "end",
            "t": time.time(),
            "data": {"step": step, "loss": 1.0 / (step + 1)},
        }
        send("job", {"type": "event", "event": event})
        time.sleep(wait_s)
