BEGIN TRANSACTION;
CREATE TABLE agent (
	id CHAR(36) DEFAULT (
    (
        lower(hex(randomblob(4))) 
        || '-' 
        || lower(hex(randomblob(2))) 
        || '-4' 
        || substr(lower(hex(randomblob(2))),2) 
        || '-' 
        || substr('89ab',abs(random()) % 4 + 1, 1) 
        || substr(lower(hex(randomblob(2))),2) 
        || '-' 
        || lower(hex(randomblob(6)))
    )
    ) NOT NULL, 
	created DATETIME DEFAULT (strftime('%Y-%m-%d %H:%M:%f000', 'now')) NOT NULL, 
	updated DATETIME DEFAULT (strftime('%Y-%m-%d %H:%M:%f000', 'now')) NOT NULL, 
	name VARCHAR NOT NULL, 
	last_activity_time DATETIME DEFAULT (strftime('%Y-%m-%d %H:%M:%f000', 'now')) NOT NULL, 
	work_queue_id CHAR(36) NOT NULL, 
	CONSTRAINT pk_agent PRIMARY KEY (id), 
	CONSTRAINT fk_agent__work_queue_id__work_queue FOREIGN KEY(work_queue_id) REFERENCES work_queue (id), 
	CONSTRAINT uq_agent__name UNIQUE (name)
);
CREATE TABLE alembic_version (
	version_num VARCHAR(32) NOT NULL, 
	CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num)
);
INSERT INTO "alembic_version" VALUES('a3b9c7d2e5f1');
CREATE TABLE "artifact" (
	id CHAR(36) DEFAULT ((
        lower(hex(randomblob(4)))
        || '-'
        || lower(hex(randomblob(2)))
        || '-4'
        || substr(lower(hex(randomblob(2))),2)
        || '-'
        || substr('89ab',abs(random()) % 4 + 1, 1)
        || substr(lower(hex(randomblob(2))),2)
        || '-'
        || lower(hex(randomblob(6)))
    )) NOT NULL, 
	created DATETIME DEFAULT (strftime('%Y-%m-%d %H:%M:%f000', 'now')) NOT NULL, 
	updated DATETIME DEFAULT (strftime('%Y-%m-%d %H:%M:%f000', 'now')) NOT NULL, 
	"key" VARCHAR, 
	type VARCHAR, 
	data JSON, 
	metadata_ JSON, 
	task_run_id CHAR(36), 
	flow_run_id CHAR(36), description VARCHAR, 
	CONSTRAINT pk_artifact PRIMARY KEY (id)
);
CREATE TABLE artifact_collection (
	id CHAR(36) DEFAULT (
    (
        lower(hex(randomblob(4)))
        || '-'
        || lower(hex(randomblob(2)))
        || '-4'
        || substr(lower(hex(randomblob(2))),2)
        || '-'
        || substr('89ab',abs(random()) % 4 + 1, 1)
        || substr(lower(hex(randomblob(2))),2)
        || '-'
        || lower(hex(randomblob(6)))
    )
    ) NOT NULL, 
	created DATETIME DEFAULT (strftime('%Y-%m-%d %H:%M:%f000', 'now')) NOT NULL, 
	updated DATETIME DEFAULT (strftime('%Y-%m-%d %H:%M:%f000', 'now')) NOT NULL, 
	"key" VARCHAR NOT NULL, 
	latest_id CHAR(36) NOT NULL, task_run_id CHAR(36), flow_run_id CHAR(36), type VARCHAR, data JSON, description VARCHAR, metadata_ JSON, 
	CONSTRAINT pk_artifact_collection PRIMARY KEY (id), 
	CONSTRAINT uq_artifact_collection__key UNIQUE ("key")
);
CREATE TABLE automation (
	name VARCHAR NOT NULL, 
	description VARCHAR NOT NULL, 
	enabled BOOLEAN DEFAULT '1' NOT NULL, 
	"trigger" JSON NOT NULL, 
	actions JSON NOT NULL, 
	actions_on_trigger JSON DEFAULT '[]' NOT NULL, 
	actions_on_resolve JSON DEFAULT '[]' NOT NULL, 
	id CHAR(36) DEFAULT (
    (
        lower(hex(randomblob(4)))
        || '-'
        || lower(hex(randomblob(2)))
        || '-4'
        || substr(lower(hex(randomblob(2))),2)
        || '-'
        || substr('89ab',abs(random()) % 4 + 1, 1)
        || substr(lower(hex(randomblob(2))),2)
        || '-'
        || lower(hex(randomblob(6)))
    )
    ) NOT NULL, 
	created DATETIME DEFAULT (strftime('%Y-%m-%d %H:%M:%f000', 'now')) NOT NULL, 
	updated DATETIME DEFAULT (strftime('%Y-%m-%d %H:%M:%f000', 'now')) NOT NULL, tags JSON DEFAULT '[]' NOT NULL, 
	CONSTRAINT pk_automation PRIMARY KEY (id)
);
CREATE TABLE "automation_bucket" (
	automation_id CHAR(36) NOT NULL, 
	trigger_id CHAR(36) NOT NULL, 
	bucketing_key JSON NOT NULL, 
	last_event JSON, 
	start DATETIME NOT NULL, 
	"end" DATETIME NOT NULL, 
	count INTEGER NOT NULL, 
	last_operation VARCHAR, 
	triggered_at DATETIME, 
	id CHAR(36) DEFAULT ((
        lower(hex(randomblob(4)))
        || '-'
        || lower(hex(randomblob(2)))
        || '-4'
        || substr(lower(hex(randomblob(2))),2)
        || '-'
        || substr('89ab',abs(random()) % 4 + 1, 1)
        || substr(lower(hex(randomblob(2))),2)
        || '-'
        || lower(hex(randomblob(6)))
    )) NOT NULL, 
	created DATETIME DEFAULT (strftime('%Y-%m-%d %H:%M:%f000', 'now')) NOT NULL, 
	updated DATETIME DEFAULT (strftime('%Y-%m-%d %H:%M:%f000', 'now')) NOT NULL, 
	CONSTRAINT pk_automation_bucket PRIMARY KEY (id), 
	CONSTRAINT fk_automation_bucket__automation_id__automation FOREIGN KEY(automation_id) REFERENCES automation (id) ON DELETE CASCADE
);
CREATE TABLE "automation_event_follower" (
	leader_event_id CHAR(36) NOT NULL, 
	follower_event_id CHAR(36) NOT NULL, 
	received DATETIME NOT NULL, 
	follower JSON NOT NULL, 
	id CHAR(36) DEFAULT ((
        lower(hex(randomblob(4)))
        || '-'
        || lower(hex(randomblob(2)))
        || '-4'
        || substr(lower(hex(randomblob(2))),2)
        || '-'
        || substr('89ab',abs(random()) % 4 + 1, 1)
        || substr(lower(hex(randomblob(2))),2)
        || '-'
        || lower(hex(randomblob(6)))
    )) NOT NULL, 
	created DATETIME DEFAULT (strftime('%Y-%m-%d %H:%M:%f000', 'now')) NOT NULL, 
	updated DATETIME DEFAULT (strftime('%Y-%m-%d %H:%M:%f000', 'now')) NOT NULL, 
	scope VARCHAR NOT NULL, 
	CONSTRAINT pk_automation_event_follower PRIMARY KEY (id)
);
CREATE TABLE automation_related_resource (
	automation_id CHAR(36) NOT NULL, 
	resource_id VARCHAR, 
	automation_owned_by_resource BOOLEAN DEFAULT '0' NOT NULL, 
	id CHAR(36) DEFAULT (
    (
        lower(hex(randomblob(4)))
        || '-'
        || lower(hex(randomblob(2)))
        || '-4'
        || substr(lower(hex(randomblob(2))),2)
        || '-'
        || substr('89ab',abs(random()) % 4 + 1, 1)
        || substr(lower(hex(randomblob(2))),2)
        || '-'
        || lower(hex(randomblob(6)))
    )
    ) NOT NULL, 
	created DATETIME DEFAULT (strftime('%Y-%m-%d %H:%M:%f000', 'now')) NOT NULL, 
	updated DATETIME DEFAULT (strftime('%Y-%m-%d %H:%M:%f000', 'now')) NOT NULL, 
	CONSTRAINT pk_automation_related_resource PRIMARY KEY (id), 
	CONSTRAINT fk_automation_related_resource__automation_id__automation FOREIGN KEY(automation_id) REFERENCES automation (id) ON DELETE CASCADE
);
CREATE TABLE "block_document" (
	id CHAR(36) DEFAULT ((
        lower(hex(randomblob(4))) 
        || '-' 
        || lower(hex(randomblob(2))) 
        || '-4' 
        || substr(lower(hex(randomblob(2))),2) 
        || '-' 
        || substr('89ab',abs(random()) % 4 + 1, 1) 
        || substr(lower(hex(randomblob(2))),2) 
        || '-' 
        || lower(hex(randomblob(6)))
    )) NOT NULL, 
	created DATETIME DEFAULT (strftime('%Y-%m-%d %H:%M:%f000', 'now')) NOT NULL, 
	updated DATETIME DEFAULT (strftime('%Y-%m-%d %H:%M:%f000', 'now')) NOT NULL, 
	name VARCHAR NOT NULL, 
	data JSON DEFAULT '{}' NOT NULL, 
	block_schema_id CHAR(36) NOT NULL, 
	block_type_id CHAR(36) NOT NULL, 
	is_anonymous BOOLEAN DEFAULT '0' NOT NULL, block_type_name VARCHAR, 
	CONSTRAINT pk_block_document PRIMARY KEY (id), 
	CONSTRAINT fk_block_document__block_type_id__block_type FOREIGN KEY(block_type_id) REFERENCES block_type (id) ON DELETE CASCADE, 
	CONSTRAINT fk_block__block_schema_id__block_schema FOREIGN KEY(block_schema_id) REFERENCES block_schema (id) ON DELETE CASCADE
);
CREATE TABLE "block_document_reference" (
	id CHAR(36) DEFAULT ((
        lower(hex(randomblob(4))) 
        || '-' 
        || lower(hex(randomblob(2))) 
        || '-4' 
        || substr(lower(hex(randomblob(2))),2) 
        || '-' 
        || substr('89ab',abs(random()) % 4 + 1, 1) 
        || substr(lower(hex(randomblob(2))),2) 
        || '-' 
        || lower(hex(randomblob(6)))
    )) NOT NULL, 
	created DATETIME DEFAULT (strftime('%Y-%m-%d %H:%M:%f000', 'now')) NOT NULL, 
	updated DATETIME DEFAULT (strftime('%Y-%m-%d %H:%M:%f000', 'now')) NOT NULL, 
	name VARCHAR NOT NULL, 
	parent_block_document_id CHAR(36) NOT NULL, 
	reference_block_document_id CHAR(36) NOT NULL, 
	CONSTRAINT pk_block_document_reference PRIMARY KEY (id), 
	CONSTRAINT fk_block_document_reference__parent_block_document_id__block_document FOREIGN KEY(parent_block_document_id) REFERENCES block_document (id) ON DELETE CASCADE, 
	CONSTRAINT fk_block_document_reference__reference_block_document_id__block_document FOREIGN KEY(reference_block_document_id) REFERENCES block_document (id) ON DELETE CASCADE, 
	CONSTRAINT ck_block_document_reference__ck_block_document_reference__no_self_reference CHECK (parent_block_document_id != reference_block_document_id)
);
CREATE TABLE "block_schema" (
	id CHAR(36) DEFAULT ((
        lower(hex(randomblob(4))) 
        || '-' 
        || lower(hex(randomblob(2))) 
        || '-4' 
        || substr(lower(hex(randomblob(2))),2) 
        || '-' 
        || substr('89ab',abs(random()) % 4 + 1, 1) 
        || substr(lower(hex(randomblob(2))),2) 
        || '-' 
        || lower(hex(randomblob(6)))
    )) NOT NULL, 
	created DATETIME DEFAULT (strftime('%Y-%m-%d %H:%M:%f000', 'now')) NOT NULL, 
	updated DATETIME DEFAULT (strftime('%Y-%m-%d %H:%M:%f000', 'now')) NOT NULL, 
	fields JSON DEFAULT '{}' NOT NULL, 
	block_type_id CHAR(36) NOT NULL, 
	checksum VARCHAR NOT NULL, 
	capabilities JSON DEFAULT '[]' NOT NULL, version VARCHAR DEFAULT 'non-versioned' NOT NULL, 
	CONSTRAINT pk_block_schema PRIMARY KEY (id), 
	CONSTRAINT fk_block_schema__block_type_id__block_type FOREIGN KEY(block_type_id) REFERENCES block_type (id) ON DELETE CASCADE
);
INSERT INTO "block_schema" VALUES('f1b979c4-e3fd-4243-b904-d3c6fff36a7f','2026-11-26 20:19:02.470572','2026-11-26 20:19:02.470592','{"block_type_slug": "webhook", "description": "Block that enables calling webhooks.", "properties": {"method": {"default": "POST", "description": "The webhook request method. Defaults to `POST`.", "enum": ["GET", "POST", "PUT", "PATCH", "DELETE"], "title": "Method", "type": "string", "position": 0}, "url": {"description": "The webhook URL.", "examples": ["https://hooks.slack.com/XXX"], "format": "password", "title": "Webhook URL", "type": "string", "writeOnly": true, "position": 1}, "headers": {"description": "A dictionary of headers to send with the webhook request.", "title": "Webhook Headers", "type": "object", "position": 2}, "allow_private_urls": {"default": true, "description": "Whether to allow notifications to private URLs. Defaults to True.", "title": "Allow Private Urls", "type": "boolean", "position": 3}, "verify": {"default": true, "description": "Whether or not to enforce a secure connection to the webhook.", "title": "Verify", "type": "boolean", "position": 4}}, "required": ["url"], "secret_fields": ["url", "headers.*"], "title": "Webhook", "type": "object"}','6222d962-d43b-474d-a807-002ef43db174','sha256:58bb03f0d84592252ad568ed9a8c899792ae5d0ad2dd4a2428e99674f9050cf1','[]','3.8.8');
INSERT INTO "block_schema" VALUES('1bcb0dc5-58f1-4028-abfe-88beccec88b7','2026-11-26 20:19:02.859237','2026-11-26 20:19:02.859255','{"block_type_slug": "secret", "description": "A block that represents a secret value. The value stored in this block will be obfuscated when this block is viewed or edited in the UI.", "properties": {"value": {"anyOf": [{"format": "password", "type": "string", "writeOnly": true}, {"title": "string", "type": "string"}, {"$ref": "#/definitions/JsonValue", "title": "JSON"}], "description": "A value that should be kept secret.", "examples": ["sk-1234567890", {"password": "s3cr3t", "username": "johndoe"}], "format": "password", "title": "Value", "writeOnly": true, "position": 0}}, "required": ["value"], "secret_fields": ["value", "value"], "title": "Secret", "type": "object"}','cec2c4a2-26fa-4766-ac24-60988bde2b82','sha256:c078ed9c1e813e224c0b353d7ad4564a11d51d3198d9ac0686478165a1911c78','[]','3.8.8');
INSERT INTO "block_schema" VALUES('f9fe6567-d179-44b0-9bff-96fea255339d','2026-11-26 20:19:03.073123','2026-11-26 20:19:03.073141','{"block_type_slug": "local-file-system", "description": "Store data as a file on a local file system.", "properties": {"basepath": {"anyOf": [{"type": "string"}, {"type": "null"}], "default": null, "description": "Default local path for this block to write to.", "title": "Basepath", "position": 0}}, "secret_fields": [], "title": "LocalFileSystem", "type": "object"}','0d4d55cd-9526-4612-b34d-94b72be0bb74','sha256:0fc8b7f936f38f465715ef2df4a817ac9fe38b80bb01d5c6c9649a6da6ae6971','["get-directory", "write-path", "put-directory", "read-path"]','3.8.8');
INSERT INTO "block_schema" VALUES('ee35d36d-44e6-45cd-9341-c777e6e88eef','2026-11-26 20:19:03.419327','2026-11-26 20:19:03.419344','{"block_type_slug": "slack-webhook", "description": "Enables sending notifications via a provided Slack webhook.\n\nSupports both standard Slack webhooks (hooks.slack.com) and Slack GovCloud\nwebhooks (hooks.slack-gov.com).", "properties": {"notify_type": {"default": "info", "description": "The type of notification being performed.", "enum": ["info", "success", "warning", "failure"], "title": "Notify Type", "type": "string", "position": 0}, "url": {"description": "Slack incoming webhook URL used to send notifications.", "examples": ["https://hooks.slack.com/XXX"], "format": "password", "title": "Webhook URL", "type": "string", "writeOnly": true, "position": 1}, "allow_private_urls": {"default": true, "description": "Whether to allow notifications to private URLs. Defaults to True.", "title": "Allow Private Urls", "type": "boolean", "position": 2}}, "required": ["url"], "secret_fields": ["url"], "title": "SlackWebhook", "type": "object"}','aac9243f-3071-439e-bbfd-372204b9a875','sha256:415bae7e5906d98e387f8848ccdfd3f3b9cdf01624f08ca228709e1193ac005f','["notify"]','3.8.8');
INSERT INTO "block_schema" VALUES('20c522de-741b-491a-ae77-0d0b9a298d2c','2026-11-26 20:19:03.695459','2026-11-26 20:19:03.695478','{"block_type_slug": "ms-teams-webhook", "description": "Enables sending notifications via a provided Microsoft Teams webhook.", "properties": {"notify_type": {"default": "info", "description": "The type of notification being performed.", "enum": ["info", "success", "warning", "failure"], "title": "Notify Type", "type": "string", "position": 0}, "url": {"description": "The Microsoft Power Automate (Workflows) URL used to send notifications to Teams.", "examples": ["https://prod-NO.LOCATION.logic.azure.com:443/workflows/WFID/triggers/manual/paths/invoke?api-version=2016-06-01&sp=%2Ftriggers%2Fmanual%2Frun&sv=1.0&sig=SIGNATURE"], "format": "password", "title": "Webhook URL", "type": "string", "writeOnly": true, "position": 1}, "allow_private_urls": {"default": true, "description": "Whether to allow notifications to private URLs. Defaults to True.", "title": "Allow Private Urls", "type": "boolean", "position": 2}, "include_image": {"default": true, "description": "Include an image with the notification.", "title": "Include Image", "type": "boolean", "position": 3}, "wrap": {"default": true, "description": "Wrap the notification text.", "title": "Wrap", "type": "boolean", "position": 4}}, "required": ["url"], "secret_fields": ["url"], "title": "MicrosoftTeamsWebhook", "type": "object"}','3cc8666b-6e3f-4a89-8873-fa841a98860e','sha256:213ff858fcad8ecddb90a120636c5461fc8ad6fb2877188c9e79f07e6c390c7c','["notify"]','3.8.8');
INSERT INTO "block_schema" VALUES('ad3a0f4d-ebb5-4776-b294-16182e059768','2026-11-26 20:19:04.011471','2026-11-26 20:19:04.011487','{"block_type_slug": "pager-duty-webhook", "description": "Enables sending notifications via a provided PagerDuty webhook.", "properties": {"notify_type": {"default": "info", "description": "The severity of the notification.", "enum": ["info", "success", "warning", "failure"], "title": "Notify Type", "type": "string", "position": 0}, "integration_key": {"description": "This can be found on the Events API V2 integration''s detail page, and is also referred to as a Routing Key. This must be provided alongside `api_key`, but will error if provided alongside `url`.", "format": "password", "title": "Integration Key", "type": "string", "writeOnly": true, "position": 1}, "api_key": {"description": "This can be found under Integrations. This must be provided alongside `integration_key`, but will error if provided alongside `url`.", "format": "password", "title": "API Key", "type": "string", "writeOnly": true, "position": 2}, "source": {"anyOf": [{"type": "string"}, {"type": "null"}], "default": "Prefect", "description": "The source string as part of the payload.", "title": "Source", "position": 3}, "component": {"default": "Notification", "description": "The component string as part of the payload.", "title": "Component", "type": "string", "position": 4}, "group": {"anyOf": [{"type": "string"}, {"type": "null"}], "default": null, "description": "The group string as part of the payload.", "title": "Group", "position": 5}, "class_id": {"anyOf": [{"type": "string"}, {"type": "null"}], "default": null, "description": "The class string as part of the payload.", "title": "Class ID", "position": 6}, "region_name": {"default": "us", "description": "The region name.", "enum": ["us", "eu"], "title": "Region Name", "type": "string", "position": 7}, "clickable_url": {"anyOf": [{"format": "uri", "minLength": 1, "type": "string"}, {"type": "null"}], "default": null, "description": "A clickable URL to associate with the notice.", "title": "Clickable URL", "position": 8}, "include_image": {"default": true, "description": "Associate the notification status via a represented icon.", "title": "Include Image", "type": "boolean", "position": 9}, "custom_details": {"anyOf": [{"additionalProperties": {"type": "string"}, "type": "object"}, {"type": "null"}], "default": null, "description": "Additional details to include as part of the payload.", "examples": ["{\"disk_space_left\": \"145GB\"}"], "title": "Custom Details", "position": 10}}, "required": ["integration_key", "api_key"], "secret_fields": ["integration_key", "api_key"], "title": "PagerDutyWebHook", "type": "object"}','2fd5a830-0bdd-48d5-a964-d8c7ca73432e','sha256:78ccfd9313655493e834f59f515865f3160bd395b6003d6e664fefd1a6f49c86','["notify"]','3.8.8');
INSERT INTO "block_schema" VALUES('016eb041-db2b-404e-824d-dc602cf19adc','2026-11-26 20:19:04.281008','2026-11-26 20:19:04.281024','{"block_type_slug": "twilio-sms", "description": "Enables sending notifications via Twilio SMS.", "properties": {"notify_type": {"default": "info", "description": "The type of notification being performed.", "enum": ["info", "success", "warning", "failure"], "title": "Notify Type", "type": "string", "position": 0}, "account_sid": {"description": "The Twilio Account SID - it can be found on the homepage of the Twilio console.", "title": "Account Sid", "type": "string", "position": 1}, "auth_token": {"description": "The Twilio Authentication Token - it can be found on the homepage of the Twilio console.", "format": "password", "title": "Auth Token", "type": "string", "writeOnly": true, "position": 2}, "from_phone_number": {"description": "The valid Twilio phone number to send the message from.", "examples": ["18001234567"], "title": "From Phone Number", "type": "string", "position": 3}, "to_phone_numbers": {"description": "A list of valid Twilio phone number(s) to send the message to.", "examples": ["[\"18004242424\", \"18004242425\"]"], "items": {"type": "string"}, "title": "To Phone Numbers", "type": "array", "position": 4}}, "required": ["account_sid", "auth_token", "from_phone_number", "to_phone_numbers"], "secret_fields": ["auth_token"], "title": "TwilioSMS", "type": "object"}','355a9d5b-c68d-40ca-86b3-3a24e587a5f0','sha256:2ab73fedd20ff1c25ffcc47f5b4a7a86c70c307321af1262f9d03defba5c8cc6','["notify"]','3.8.8');
INSERT INTO "block_schema" VALUES('af1a9832-12a1-4064-94b4-4037efd48ca8','2026-11-26 20:19:04.730636','2026-11-26 20:19:04.730652','{"block_type_slug": "opsgenie-webhook", "description": "Enables sending notifications via a provided Opsgenie webhook.", "properties": {"notify_type": {"default": "info", "description": "The type of notification being performed.", "enum": ["info", "success", "warning", "failure"], "title": "Notify Type", "type": "string", "position": 0}, "apikey": {"description": "The API Key associated with your Opsgenie account.", "format": "password", "title": "API Key", "type": "string", "writeOnly": true, "position": 1}, "target_user": {"anyOf": [{"items": {"type": "string"}, "type": "array"}, {"type": "null"}], "default": null, "description": "The user(s) you wish to notify.", "title": "Target User", "position": 2}, "target_team": {"anyOf": [{"items": {"type": "string"}, "type": "array"}, {"type": "null"}], "default": null, "description": "The team(s) you wish to notify.", "title": "Target Team", "position": 3}, "target_schedule": {"anyOf": [{"items": {"type": "string"}, "type": "array"}, {"type": "null"}], "default": null, "description": "The schedule(s) you wish to notify.", "title": "Target Schedule", "position": 4}, "target_escalation": {"anyOf": [{"items": {"type": "string"}, "type": "array"}, {"type": "null"}], "default": null, "description": "The escalation(s) you wish to notify.", "title": "Target Escalation", "position": 5}, "region_name": {"default": "us", "description": "The 2-character region code.", "enum": ["us", "eu"], "title": "Region Name", "type": "string", "position": 6}, "batch": {"default": false, "description": "Notify all targets in batches (instead of individually).", "title": "Batch", "type": "boolean", "position": 7}, "tags": {"anyOf": [{"items": {"type": "string"}, "type": "array"}, {"type": "null"}], "default": null, "description": "A comma-separated list of tags you can associate with your Opsgenie message.", "examples": ["[\"tag1\", \"tag2\"]"], "title": "Tags", "position": 8}, "priority": {"anyOf": [{"type": "integer"}, {"type": "null"}], "default": 3, "description": "The priority to associate with the message. It is on a scale between 1 (LOW) and 5 (EMERGENCY).", "title": "Priority", "position": 9}, "alias": {"anyOf": [{"type": "string"}, {"type": "null"}], "default": null, "description": "The alias to associate with the message.", "title": "Alias", "position": 10}, "entity": {"anyOf": [{"type": "string"}, {"type": "null"}], "default": null, "description": "The entity to associate with the message.", "title": "Entity", "position": 11}, "details": {"anyOf": [{"additionalProperties": {"type": "string"}, "type": "object"}, {"type": "null"}], "default": null, "description": "Additional details composed of key/values pairs.", "examples": ["{\"key1\": \"value1\", \"key2\": \"value2\"}"], "title": "Details", "position": 12}}, "required": ["apikey"], "secret_fields": ["apikey"], "title": "OpsgenieWebhook", "type": "object"}','fbc3ae7a-3512-42c9-bd61-721b6ae04039','sha256:c9d307a75b69d82460134069d071804fefde0ec2c2b9aed67c90201fee041755','["notify"]','3.8.8');
INSERT INTO "block_schema" VALUES('c82c6ebd-631a-489d-8834-25a769cab948','2026-11-26 20:19:05.103641','2026-11-26 20:19:05.103657','{"block_type_slug": "mattermost-webhook", "description": "Enables sending notifications via a provided Mattermost webhook.", "properties": {"notify_type": {"default": "info", "description": "The type of notification being performed.", "enum": ["info", "success", "warning", "failure"], "title": "Notify Type", "type": "string", "position": 0}, "hostname": {"description": "The hostname of your Mattermost server.", "examples": ["Mattermost.example.com"], "title": "Hostname", "type": "string", "position": 1}, "secure": {"default": false, "description": "Whether to use secure https connection.", "title": "Secure", "type": "boolean", "position": 2}, "token": {"description": "The token associated with your Mattermost webhook.", "format": "password", "title": "Token", "type": "string", "writeOnly": true, "position": 3}, "botname": {"anyOf": [{"type": "string"}, {"type": "null"}], "default": null, "description": "The name of the bot that will send the message.", "title": "Bot name", "position": 4}, "channels": {"anyOf": [{"items": {"type": "string"}, "type": "array"}, {"type": "null"}], "default": null, "description": "The channel(s) you wish to notify.", "title": "Channels", "position": 5}, "include_image": {"default": false, "description": "Whether to include the Apprise status image in the message.", "title": "Include Image", "type": "boolean", "position": 6}, "path": {"anyOf": [{"type": "string"}, {"type": "null"}], "default": null, "description": "An optional sub-path specification to append to the hostname.", "title": "Path", "position": 7}, "port": {"default": 8065, "description": "The port of your Mattermost server.", "title": "Port", "type": "integer", "position": 8}}, "required": ["hostname", "token"], "secret_fields": ["token"], "title": "MattermostWebhook", "type": "object"}','2d9ec3c5-ab75-4738-88dd-61e085ff7a46','sha256:34daad1160b59fb6d5c8fc59d09abb2cbf9c2283b7b9f6a76cbaad827002d14c','["notify"]','3.8.8');
INSERT INTO "block_schema" VALUES('78fd2bbb-117d-43e7-bbc4-b3cefc60507b','2026-11-26 20:19:05.383424','2026-11-26 20:19:05.383442','{"block_type_slug": "discord-webhook", "description": "Enables sending notifications via a provided Discord webhook.", "properties": {"notify_type": {"default": "info", "description": "The type of notification being performed.", "enum": ["info", "success", "warning", "failure"], "title": "Notify Type", "type": "string", "position": 0}, "webhook_id": {"description": "The first part of 2 tokens provided to you after creating a incoming-webhook.", "format": "password", "title": "Webhook Id", "type": "string", "writeOnly": true, "position": 1}, "webhook_token": {"description": "The second part of 2 tokens provided to you after creating a incoming-webhook.", "format": "password", "title": "Webhook Token", "type": "string", "writeOnly": true, "position": 2}, "botname": {"anyOf": [{"type": "string"}, {"type": "null"}], "default": null, "description": "Identify the name of the bot that should issue the message. If one isn''t specified then the default is to just use your account (associated with the incoming-webhook).", "title": "Bot name", "position": 3}, "tts": {"default": false, "description": "Whether to enable Text-To-Speech.", "title": "Tts", "type": "boolean", "position": 4}, "include_image": {"default": false, "description": "Whether to include an image in-line with the message describing the notification type.", "title": "Include Image", "type": "boolean", "position": 5}, "avatar": {"default": false, "description": "Whether to override the default discord avatar icon.", "title": "Avatar", "type": "boolean", "position": 6}, "avatar_url": {"anyOf": [{"type": "string"}, {"type": "null"}], "default": null, "description": "Over-ride the default discord avatar icon URL. By default this is not set and Apprise chooses the URL dynamically based on the type of message (info, success, warning, or error).", "title": "Avatar URL", "position": 7}}, "required": ["webhook_id", "webhook_token"], "secret_fields": ["webhook_id", "webhook_token"], "title": "DiscordWebhook", "type": "object"}','5da7797f-f4ee-4db7-b1e7-215a0669253d','sha256:b3ea94c0ce1573b22c0e7bf2457f5f52a210327e0f7be05c74970a246304b1e2','["notify"]','3.8.8');
INSERT INTO "block_schema" VALUES('af7e4cb5-8822-4f8f-b85d-e164749c9bd9','2026-11-26 20:19:05.726386','2026-11-26 20:19:05.726408','{"block_type_slug": "custom-webhook", "description": "Enables sending notifications via any custom webhook.\n\nAll nested string param contains `{{key}}` will be substituted with value from context/secrets.\n\nContext values include: `subject`, `body` and `name`.", "properties": {"name": {"description": "Name of the webhook.", "title": "Name", "type": "string", "position": 0}, "url": {"description": "The webhook URL.", "examples": ["https://hooks.slack.com/XXX"], "title": "Webhook URL", "type": "string", "position": 1}, "method": {"default": "POST", "description": "The webhook request method. Defaults to `POST`.", "enum": ["GET", "POST", "PUT", "PATCH", "DELETE"], "title": "Method", "type": "string", "position": 2}, "params": {"anyOf": [{"additionalProperties": {"type": "string"}, "type": "object"}, {"type": "null"}], "default": null, "description": "Custom query params.", "title": "Query Params", "position": 3}, "json_data": {"anyOf": [{"additionalProperties": true, "type": "object"}, {"type": "null"}], "default": null, "description": "Send json data as payload.", "examples": ["{\"text\": \"{{subject}}\\n{{body}}\", \"title\": \"{{name}}\", \"token\": \"{{tokenFromSecrets}}\"}"], "title": "JSON Data", "position": 4}, "form_data": {"anyOf": [{"additionalProperties": {"type": "string"}, "type": "object"}, {"type": "string"}, {"type": "null"}], "default": null, "description": "Send form data as payload. Should not be used together with _JSON Data_. Can be a dictionary for form-encoded data or a string for raw body content.", "examples": ["{\"text\": \"{{subject}}\\n{{body}}\", \"title\": \"{{name}}\", \"token\": \"{{tokenFromSecrets}}\"}"], "title": "Form Data", "position": 5}, "headers": {"anyOf": [{"additionalProperties": {"type": "string"}, "type": "object"}, {"type": "null"}], "default": null, "description": "Custom headers.", "title": "Headers", "position": 6}, "cookies": {"anyOf": [{"additionalProperties": {"type": "string"}, "type": "object"}, {"type": "null"}], "default": null, "description": "Custom cookies.", "title": "Cookies", "position": 7}, "timeout": {"default": 10, "description": "Request timeout in seconds. Defaults to 10.", "title": "Timeout", "type": "number", "position": 8}, "allow_private_urls": {"default": true, "description": "Whether to allow notifications to private URLs. Defaults to True.", "title": "Allow Private Urls", "type": "boolean", "position": 9}, "secrets": {"description": "A dictionary of secret values to be substituted in other configs.", "examples": ["{\"tokenFromSecrets\":\"SomeSecretToken\"}"], "title": "Custom Secret Values", "type": "object", "position": 10}}, "required": ["name", "url"], "secret_fields": ["secrets.*"], "title": "CustomWebhookNotificationBlock", "type": "object"}','a45dc8b3-9b02-4a83-9069-57657ce6a69e','sha256:69076241f2b9959ae97554957a22ec428886b46f6ed4732af160e117d487c0cf','["notify"]','3.8.8');
INSERT INTO "block_schema" VALUES('b12ac206-14dd-442a-b95d-60653de8f2b5','2026-11-26 20:19:05.927358','2026-11-26 20:19:05.927376','{"block_type_slug": "sendgrid-email", "description": "Enables sending notifications via Sendgrid email service.", "properties": {"notify_type": {"default": "info", "description": "The type of notification being performed.", "enum": ["info", "success", "warning", "failure"], "title": "Notify Type", "type": "string", "position": 0}, "api_key": {"description": "The API Key associated with your sendgrid account.", "format": "password", "title": "API Key", "type": "string", "writeOnly": true, "position": 1}, "sender_email": {"description": "The sender email id.", "examples": ["test-support@gmail.com"], "title": "Sender email id", "type": "string", "position": 2}, "to_emails": {"description": "Email ids of all recipients.", "examples": ["[\"recipient1@gmail.com\", \"recipient2@gmail.com\"]"], "items": {"type": "string"}, "title": "Recipient emails", "type": "array", "position": 3}}, "required": ["api_key", "sender_email", "to_emails"], "secret_fields": ["api_key"], "title": "SendgridEmail", "type": "object"}','f3fc4c75-d9f8-47ac-a2e7-4568d9a8ca8d','sha256:b67583d3b7ce215cd84a58ba42bb8936294cc1417ff3fe54d0fb08447932c6f2','["notify"]','3.8.8');
INSERT INTO "block_schema" VALUES('8ed2b67c-00b8-4590-aead-903dc69a9210','2026-11-26 20:19:06.847501','2026-11-26 20:19:06.847516','{"block_type_slug": "remote-file-system", "description": "Store data as a file on a remote file system.\n\nSupports any remote file system supported by `fsspec`. The file system is specified\nusing a protocol. For example, \"s3://my-bucket/my-folder/\" will use S3.", "properties": {"basepath": {"description": "Default path for this block to write to.", "examples": ["s3://my-bucket/my-folder/"], "title": "Basepath", "type": "string", "position": 0}, "settings": {"description": "Additional settings to pass through to fsspec.", "title": "Settings", "type": "object", "position": 1}}, "required": ["basepath"], "secret_fields": [], "title": "RemoteFileSystem", "type": "object"}','bd90afc3-ca7a-4ab3-97fa-8bbd06ed77c4','sha256:3bca63009aa57af6c7053fc17a2a336a1e1801bbb19ca2c5939b59afe435c531','["get-directory", "write-path", "put-directory", "read-path"]','3.8.8');
INSERT INTO "block_schema" VALUES('50eddd1b-4130-45b9-b85d-dd24468f7dbb','2026-11-26 20:19:07.115586','2026-11-26 20:19:07.115602','{"block_type_slug": "smb", "description": "Store data as a file on a SMB share.", "properties": {"share_path": {"description": "SMB target (requires <SHARE>, followed by <PATH>).", "examples": ["/SHARE/dir/subdir"], "title": "Share Path", "type": "string", "position": 0}, "smb_username": {"anyOf": [{"format": "password", "type": "string", "writeOnly": true}, {"type": "null"}], "default": null, "description": "Username with access to the target SMB SHARE.", "title": "SMB Username", "position": 1}, "smb_password": {"anyOf": [{"format": "password", "type": "string", "writeOnly": true}, {"type": "null"}], "default": null, "description": "Password for SMB access.", "title": "SMB Password", "position": 2}, "smb_host": {"description": "SMB server/hostname.", "title": "SMB server/hostname", "type": "string", "position": 3}, "smb_port": {"anyOf": [{"type": "integer"}, {"type": "null"}], "default": null, "description": "SMB port (default: 445).", "title": "SMB port", "position": 4}}, "required": ["share_path", "smb_host"], "secret_fields": ["smb_username", "smb_password"], "title": "SMB", "type": "object"}','9ee0a7f6-38c2-48fd-a431-76c40e4d90a6','sha256:849cd014b777a64ee219f6b8b13c15b37c34ea4138d9224c4d45bf00ba2e4681','["get-directory", "write-path", "put-directory", "read-path"]','3.8.8');
INSERT INTO "block_schema" VALUES('98a4091a-b2c3-4174-81be-d6ce9dfe89dd','2026-11-26 20:19:07.948251','2026-11-26 20:19:07.948274','{"title": "AwsCredentials", "description": "Block used to manage authentication with AWS. AWS authentication is\nhandled via the `boto3` module. Refer to the\n[boto3 docs](https://boto3.amazonaws.com/v1/documentation/api/latest/guide/credentials.html)\nfor more info about the possible credential configurations.", "type": "object", "properties": {"aws_access_key_id": {"title": "AWS Access Key ID", "description": "A specific AWS access key ID.", "type": "string"}, "aws_secret_access_key": {"title": "AWS Access Key Secret", "description": "A specific AWS secret access key.", "type": "string", "writeOnly": true, "format": "password"}, "aws_session_token": {"title": "AWS Session Token", "description": "The session key for your AWS account. This is only needed when you are using temporary credentials.", "type": "string"}, "profile_name": {"title": "Profile Name", "description": "The profile to use when creating your session.", "type": "string"}, "region_name": {"title": "Region Name", "description": "The AWS Region where you want to create new connections.", "type": "string"}, "aws_client_parameters": {"title": "AWS Client Parameters", "description": "Extra parameters to initialize the Client.", "allOf": [{"$ref": "#/definitions/AwsClientParameters"}]}}, "block_type_slug": "aws-credentials", "secret_fields": ["aws_secret_access_key"], "definitions": {"AwsClientParameters": {"title": "AwsClientParameters", "description": "Model used to manage extra parameters that you can pass when you initialize\nthe Client. If you want to find more information, see\n[boto3 docs](https://boto3.amazonaws.com/v1/documentation/api/latest/reference/core/session.html)\nfor more info about the possible client configurations.\n\nAttributes:\n    api_version: The API version to use. By default, botocore will\n        use the latest API version when creating a client. You only need\n        to specify this parameter if you want to use a previous API version\n        of the client.\n    use_ssl: Whether or not to use SSL. By default, SSL is used.\n        Note that not all services support non-ssl connections.\n    verify: Whether or not to verify SSL certificates. By default\n        SSL certificates are verified. If False, SSL will still be used\n        (unless use_ssl is False), but SSL certificates\n        will not be verified. Passing a file path to this is deprecated.\n    verify_cert_path: A filename of the CA cert bundle to\n        use. You can specify this argument if you want to use a\n        different CA cert bundle than the one used by botocore.\n    endpoint_url: The complete URL to use for the constructed\n        client. Normally, botocore will automatically construct the\n        appropriate URL to use when communicating with a service. You\n        can specify a complete URL (including the \"http/https\" scheme)\n        to override this behavior. If this value is provided,\n        then ``use_ssl`` is ignored.\n    config: Advanced configuration for Botocore clients. See\n        [botocore docs](https://botocore.amazonaws.com/v1/documentation/api/latest/reference/config.html)\n        for more details.", "type": "object", "properties": {"api_version": {"title": "API Version", "description": "The API version to use.", "type": "string"}, "use_ssl": {"title": "Use SSL", "description": "Whether or not to use SSL.", "default": true, "type": "boolean"}, "verify": {"title": "Verify", "description": "Whether or not to verify SSL certificates.", "default": true, "anyOf": [{"type": "boolean"}, {"type": "string", "format": "file-path"}]}, "verify_cert_path": {"title": "Certificate Authority Bundle File Path", "description": "Path to the CA cert bundle to use.", "format": "file-path", "type": "string"}, "endpoint_url": {"title": "Endpoint URL", "description": "The complete URL to use for the constructed client.", "type": "string"}, "config": {"title": "Botocore Config", "description": "Advanced configuration for Botocore clients.", "type": "object"}}}}}','7ed0e585-f976-42cd-8a2f-936db276f749','sha256:17b73297ed60f080fb235b3a5a145a6d9b28a09b3ff2d9d17810b5e2c2075ebe','[]','0.4.14');
INSERT INTO "block_schema" VALUES('6d8bb493-331e-4a46-b52a-f88d1be83c90','2026-11-26 20:19:08.112317','2026-11-26 20:19:08.112339','{"title": "AwsSecret", "description": "Manages a secret in AWS''s Secrets Manager.", "type": "object", "properties": {"aws_credentials": {"$ref": "#/definitions/AwsCredentials"}, "secret_name": {"title": "Secret Name", "description": "The name of the secret.", "type": "string"}}, "required": ["aws_credentials", "secret_name"], "block_type_slug": "aws-secret", "secret_fields": ["aws_credentials.aws_secret_access_key"], "definitions": {"AwsClientParameters": {"title": "AwsClientParameters", "description": "Model used to manage extra parameters that you can pass when you initialize\nthe Client. If you want to find more information, see\n[boto3 docs](https://boto3.amazonaws.com/v1/documentation/api/latest/reference/core/session.html)\nfor more info about the possible client configurations.\n\nAttributes:\n    api_version: The API version to use. By default, botocore will\n        use the latest API version when creating a client. You only need\n        to specify this parameter if you want to use a previous API version\n        of the client.\n    use_ssl: Whether or not to use SSL. By default, SSL is used.\n        Note that not all services support non-ssl connections.\n    verify: Whether or not to verify SSL certificates. By default\n        SSL certificates are verified. If False, SSL will still be used\n        (unless use_ssl is False), but SSL certificates\n        will not be verified. Passing a file path to this is deprecated.\n    verify_cert_path: A filename of the CA cert bundle to\n        use. You can specify this argument if you want to use a\n        different CA cert bundle than the one used by botocore.\n    endpoint_url: The complete URL to use for the constructed\n        client. Normally, botocore will automatically construct the\n        appropriate URL to use when communicating with a service. You\n        can specify a complete URL (including the \"http/https\" scheme)\n        to override this behavior. If this value is provided,\n        then ``use_ssl`` is ignored.\n    config: Advanced configuration for Botocore clients. See\n        [botocore docs](https://botocore.amazonaws.com/v1/documentation/api/latest/reference/config.html)\n        for more details.", "type": "object", "properties": {"api_version": {"title": "API Version", "description": "The API version to use.", "type": "string"}, "use_ssl": {"title": "Use SSL", "description": "Whether or not to use SSL.", "default": true, "type": "boolean"}, "verify": {"title": "Verify", "description": "Whether or not to verify SSL certificates.", "default": true, "anyOf": [{"type": "boolean"}, {"type": "string", "format": "file-path"}]}, "verify_cert_path": {"title": "Certificate Authority Bundle File Path", "description": "Path to the CA cert bundle to use.", "format": "file-path", "type": "string"}, "endpoint_url": {"title": "Endpoint URL", "description": "The complete URL to use for the constructed client.", "type": "string"}, "config": {"title": "Botocore Config", "description": "Advanced configuration for Botocore clients.", "type": "object"}}}}}','9dd230be-961b-4a7a-8083-0a6d14a16c36','sha256:d10fde5ac25b10edca4859c4d0bf61b4a9106215cd79ab80997f29859b190b7d','[]','0.4.14');
INSERT INTO "block_schema" VALUES('a598910c-3c3e-41fd-b400-c10472afaac0','2026-11-26 20:19:08.371095','2026-11-26 20:19:08.371118','{"title": "LambdaFunction", "description": "Invoke a Lambda function. This block is part of the prefect-aws\ncollection. Install prefect-aws with `pip install prefect-aws` to use this\nblock.", "type": "object", "properties": {"function_name": {"title": "Function Name", "description": "The name, ARN, or partial ARN of the Lambda function to run. This must be the name of a function that is already deployed to AWS Lambda.", "type": "string"}, "qualifier": {"title": "Qualifier", "description": "The version or alias of the Lambda function to use when invoked. If not specified, the latest (unqualified) version of the Lambda function will be used.", "type": "string"}, "aws_credentials": {"title": "AWS Credentials", "description": "The AWS credentials to invoke the Lambda with.", "allOf": [{"$ref": "#/definitions/AwsCredentials"}]}}, "required": ["function_name"], "block_type_slug": "lambda-function", "secret_fields": ["aws_credentials.aws_secret_access_key"], "definitions": {"AwsClientParameters": {"title": "AwsClientParameters", "description": "Model used to manage extra parameters that you can pass when you initialize\nthe Client. If you want to find more information, see\n[boto3 docs](https://boto3.amazonaws.com/v1/documentation/api/latest/reference/core/session.html)\nfor more info about the possible client configurations.\n\nAttributes:\n    api_version: The API version to use. By default, botocore will\n        use the latest API version when creating a client. You only need\n        to specify this parameter if you want to use a previous API version\n        of the client.\n    use_ssl: Whether or not to use SSL. By default, SSL is used.\n        Note that not all services support non-ssl connections.\n    verify: Whether or not to verify SSL certificates. By default\n        SSL certificates are verified. If False, SSL will still be used\n        (unless use_ssl is False), but SSL certificates\n        will not be verified. Passing a file path to this is deprecated.\n    verify_cert_path: A filename of the CA cert bundle to\n        use. You can specify this argument if you want to use a\n        different CA cert bundle than the one used by botocore.\n    endpoint_url: The complete URL to use for the constructed\n        client. Normally, botocore will automatically construct the\n        appropriate URL to use when communicating with a service. You\n        can specify a complete URL (including the \"http/https\" scheme)\n        to override this behavior. If this value is provided,\n        then ``use_ssl`` is ignored.\n    config: Advanced configuration for Botocore clients. See\n        [botocore docs](https://botocore.amazonaws.com/v1/documentation/api/latest/reference/config.html)\n        for more details.", "type": "object", "properties": {"api_version": {"title": "API Version", "description": "The API version to use.", "type": "string"}, "use_ssl": {"title": "Use SSL", "description": "Whether or not to use SSL.", "default": true, "type": "boolean"}, "verify": {"title": "Verify", "description": "Whether or not to verify SSL certificates.", "default": true, "anyOf": [{"type": "boolean"}, {"type": "string", "format": "file-path"}]}, "verify_cert_path": {"title": "Certificate Authority Bundle File Path", "description": "Path to the CA cert bundle to use.", "format": "file-path", "type": "string"}, "endpoint_url": {"title": "Endpoint URL", "description": "The complete URL to use for the constructed client.", "type": "string"}, "config": {"title": "Botocore Config", "description": "Advanced configuration for Botocore clients.", "type": "object"}}}}}','ff088f07-43ef-4793-b95c-2265a42a3313','sha256:93fb424309b85c0ef9a8e69cc9d0df1e0afa0f2ed15f1ecc710ec3463513b2e4','[]','0.4.14');
INSERT INTO "block_schema" VALUES('7dbdd211-ecdf-4cd9-a166-dac3149bc0ee','2026-11-26 20:19:08.719134','2026-11-26 20:19:08.719153','{"title": "MinIOCredentials", "description": "Block used to manage authentication with MinIO. Refer to the MinIO docs: https://docs.min.io/docs/minio-server-configuration-guide.html for more info about the possible credential configurations.", "type": "object", "properties": {"minio_root_user": {"title": "Minio Root User", "description": "Admin or root user.", "type": "string"}, "minio_root_password": {"title": "Minio Root Password", "description": "Admin or root password.", "type": "string", "writeOnly": true, "format": "password"}, "region_name": {"title": "Region Name", "description": "The AWS Region where you want to create new connections.", "type": "string"}, "aws_client_parameters": {"title": "Aws Client Parameters", "description": "Extra parameters to initialize the Client.", "allOf": [{"$ref": "#/definitions/AwsClientParameters"}]}}, "required": ["minio_root_user", "minio_root_password"], "block_type_slug": "minio-credentials", "secret_fields": ["minio_root_password"], "definitions": {"AwsClientParameters": {"title": "AwsClientParameters", "description": "Model used to manage extra parameters that you can pass when you initialize\nthe Client. If you want to find more information, see\n[boto3 docs](https://boto3.amazonaws.com/v1/documentation/api/latest/reference/core/session.html)\nfor more info about the possible client configurations.\n\nAttributes:\n    api_version: The API version to use. By default, botocore will\n        use the latest API version when creating a client. You only need\n        to specify this parameter if you want to use a previous API version\n        of the client.\n    use_ssl: Whether or not to use SSL. By default, SSL is used.\n        Note that not all services support non-ssl connections.\n    verify: Whether or not to verify SSL certificates. By default\n        SSL certificates are verified. If False, SSL will still be used\n        (unless use_ssl is False), but SSL certificates\n        will not be verified. Passing a file path to this is deprecated.\n    verify_cert_path: A filename of the CA cert bundle to\n        use. You can specify this argument if you want to use a\n        different CA cert bundle than the one used by botocore.\n    endpoint_url: The complete URL to use for the constructed\n        client. Normally, botocore will automatically construct the\n        appropriate URL to use when communicating with a service. You\n        can specify a complete URL (including the \"http/https\" scheme)\n        to override this behavior. If this value is provided,\n        then ``use_ssl`` is ignored.\n    config: Advanced configuration for Botocore clients. See\n        [botocore docs](https://botocore.amazonaws.com/v1/documentation/api/latest/reference/config.html)\n        for more details.", "type": "object", "properties": {"api_version": {"title": "API Version", "description": "The API version to use.", "type": "string"}, "use_ssl": {"title": "Use SSL", "description": "Whether or not to use SSL.", "default": true, "type": "boolean"}, "verify": {"title": "Verify", "description": "Whether or not to verify SSL certificates.", "default": true, "anyOf": [{"type": "boolean"}, {"type": "string", "format": "file-path"}]}, "verify_cert_path": {"title": "Certificate Authority Bundle File Path", "description": "Path to the CA cert bundle to use.", "format": "file-path", "type": "string"}, "endpoint_url": {"title": "Endpoint URL", "description": "The complete URL to use for the constructed client.", "type": "string"}, "config": {"title": "Botocore Config", "description": "Advanced configuration for Botocore clients.", "type": "object"}}}}}','93904946-7748-4772-8b2a-ed6c39c9eef0','sha256:5b4f1e5270f3a3670ff3d06b7e6e8246d54dacba976321dec42abe51c33415fb','[]','0.4.14');
INSERT INTO "block_schema" VALUES('807bc854-fd08-4023-aa14-1948733b2026','2026-11-26 20:19:08.791843','2026-11-26 20:19:08.791876','{"title": "S3Bucket", "description": "Block used to store data using AWS S3 or S3-compatible object storage like MinIO.", "type": "object", "properties": {"bucket_name": {"title": "Bucket Name", "description": "Name of your bucket.", "type": "string"}, "credentials": {"title": "Credentials", "description": "A block containing your credentials to AWS or MinIO.", "anyOf": [{"$ref": "#/definitions/MinIOCredentials"}, {"$ref": "#/definitions/AwsCredentials"}]}, "bucket_folder": {"title": "Bucket Folder", "description": "A default path to a folder within the S3 bucket to use for reading and writing objects.", "default": "", "type": "string"}}, "required": ["bucket_name"], "block_type_slug": "s3-bucket", "secret_fields": ["credentials.minio_root_password", "credentials.aws_secret_access_key"], "definitions": {"AwsClientParameters": {"title": "AwsClientParameters", "description": "Model used to manage extra parameters that you can pass when you initialize\nthe Client. If you want to find more information, see\n[boto3 docs](https://boto3.amazonaws.com/v1/documentation/api/latest/reference/core/session.html)\nfor more info about the possible client configurations.\n\nAttributes:\n    api_version: The API version to use. By default, botocore will\n        use the latest API version when creating a client. You only need\n        to specify this parameter if you want to use a previous API version\n        of the client.\n    use_ssl: Whether or not to use SSL. By default, SSL is used.\n        Note that not all services support non-ssl connections.\n    verify: Whether or not to verify SSL certificates. By default\n        SSL certificates are verified. If False, SSL will still be used\n        (unless use_ssl is False), but SSL certificates\n        will not be verified. Passing a file path to this is deprecated.\n    verify_cert_path: A filename of the CA cert bundle to\n        use. You can specify this argument if you want to use a\n        different CA cert bundle than the one used by botocore.\n    endpoint_url: The complete URL to use for the constructed\n        client. Normally, botocore will automatically construct the\n        appropriate URL to use when communicating with a service. You\n        can specify a complete URL (including the \"http/https\" scheme)\n        to override this behavior. If this value is provided,\n        then ``use_ssl`` is ignored.\n    config: Advanced configuration for Botocore clients. See\n        [botocore docs](https://botocore.amazonaws.com/v1/documentation/api/latest/reference/config.html)\n        for more details.", "type": "object", "properties": {"api_version": {"title": "API Version", "description": "The API version to use.", "type": "string"}, "use_ssl": {"title": "Use SSL", "description": "Whether or not to use SSL.", "default": true, "type": "boolean"}, "verify": {"title": "Verify", "description": "Whether or not to verify SSL certificates.", "default": true, "anyOf": [{"type": "boolean"}, {"type": "string", "format": "file-path"}]}, "verify_cert_path": {"title": "Certificate Authority Bundle File Path", "description": "Path to the CA cert bundle to use.", "format": "file-path", "type": "string"}, "endpoint_url": {"title": "Endpoint URL", "description": "The complete URL to use for the constructed client.", "type": "string"}, "config": {"title": "Botocore Config", "description": "Advanced configuration for Botocore clients.", "type": "object"}}}}}','e34a0644-5eff-4631-9330-39a006b7329d','sha256:da1e638612365b12ec83b6102986cc5efe54e84b7144bd668629f6972afe748f','["get-directory", "put-directory", "read-path", "write-path"]','0.4.14');
INSERT INTO "block_schema" VALUES('57881e46-ec86-44ed-8873-1d5999922dd5','2026-11-26 20:19:09.014052','2026-11-26 20:19:09.014068','{"title": "AzureBlobStorageContainer", "description": "Represents a container in Azure Blob Storage.\n\nThis class provides methods for downloading and uploading files and folders\nto and from the Azure Blob Storage container.", "type": "object", "properties": {"container_name": {"title": "Container Name", "description": "The name of a Azure Blob Storage container.", "type": "string"}, "credentials": {"title": "Credentials", "description": "The credentials to use for authentication with Azure.", "allOf": [{"$ref": "#/definitions/AzureBlobStorageCredentials"}]}, "base_folder": {"title": "Base Folder", "description": "A base path to a folder within the container to use for reading and writing objects.", "type": "string"}}, "required": ["container_name"], "block_type_slug": "azure-blob-storage-container", "secret_fields": ["credentials.connection_string"]}','c51cf70a-04b7-4a33-b020-dfe150641911','sha256:dcb604fba31292177868c0998110c7b4c0ba0b5601ee39679b2936adfd836f19','["get-directory", "put-directory", "read-path", "write-path"]','0.3.7');
INSERT INTO "block_schema" VALUES('e3e87ce9-36c9-4593-ab94-64b48f332827','2026-11-26 20:19:09.115072','2026-11-26 20:19:09.115089','{"title": "AzureBlobStorageCredentials", "description": "Stores credentials for authenticating with Azure Blob Storage.", "type": "object", "properties": {"connection_string": {"title": "Connection String", "description": "The connection string to your Azure storage account. If provided, the connection string will take precedence over the account URL.", "type": "string", "writeOnly": true, "format": "password"}, "account_url": {"title": "Account URL", "description": "The URL for your Azure storage account. If provided, the account URL will be used to authenticate with the discovered default Azure credentials.", "type": "string"}}, "block_type_slug": "azure-blob-storage-credentials", "secret_fields": ["connection_string"]}','2aa3f1ae-2e86-48aa-a6f1-262420082d9a','sha256:73e835b6cb9a1902fd869037fb7f8a90f974508dda7a168e748a1206e7c325eb','[]','non-versioned');
INSERT INTO "block_schema" VALUES('1a72ed65-230a-48a5-92fe-ea6b0c585c2f','2026-11-26 20:19:09.197610','2026-11-26 20:19:09.197626','{"title": "AzureBlobStorageCredentials", "description": "Stores credentials for authenticating with Azure Blob Storage.", "type": "object", "properties": {"connection_string": {"title": "Connection String", "description": "The connection string to your Azure storage account. If provided, the connection string will take precedence over the account URL.", "type": "string", "writeOnly": true, "format": "password"}, "account_url": {"title": "Account URL", "description": "The URL for your Azure storage account. If provided, the account URL will be used to authenticate with the discovered default Azure credentials.", "type": "string"}}, "block_type_slug": "azure-blob-storage-credentials", "secret_fields": ["connection_string"]}','2aa3f1ae-2e86-48aa-a6f1-262420082d9a','sha256:73e835b6cb9a1902fd869037fb7f8a90f974508dda7a168e748a1206e7c325eb','[]','0.3.7');
INSERT INTO "block_schema" VALUES('0158377b-2fb7-4e86-b9f1-fe032739514a','2026-11-26 20:19:09.257690','2026-11-26 20:19:09.257712','{"title": "AzureContainerInstanceCredentials", "description": "Block used to manage Azure Container Instances authentication. Stores Azure Service\nPrincipal authentication data.", "type": "object", "properties": {"client_id": {"title": "Client ID", "description": "The service principal client ID. If none of client_id, tenant_id, and client_secret are provided, will use DefaultAzureCredential; else will need to provide all three to use ClientSecretCredential.", "type": "string"}, "tenant_id": {"title": "Tenant ID", "description": "The service principal tenant ID.If none of client_id, tenant_id, and client_secret are provided, will use DefaultAzureCredential; else will need to provide all three to use ClientSecretCredential.", "type": "string"}, "client_secret": {"title": "Client Secret", "description": "The service principal client secret.If none of client_id, tenant_id, and client_secret are provided, will use DefaultAzureCredential; else will need to provide all three to use ClientSecretCredential.", "type": "string", "writeOnly": true, "format": "password"}, "credential_kwargs": {"title": "Additional Credential Keyword Arguments", "description": "Additional keyword arguments to pass to `ClientSecretCredential` or `DefaultAzureCredential`.", "type": "object"}}, "block_type_slug": "azure-container-instance-credentials", "secret_fields": ["client_secret"]}','0bb4419b-0b20-4827-b282-b75077434bd4','sha256:17a9122f9f345a4547128cc05f7ff7146da9a72c4bac2850004fcc6c8d9be2d1','[]','0.3.7');
INSERT INTO "block_schema" VALUES('d412892f-58b0-40d0-a3b7-69f3c35381f0','2026-11-26 20:19:09.357677','2026-11-26 20:19:09.357697','{"title": "AzureCosmosDbCredentials", "description": "Block used to manage Cosmos DB authentication with Azure.\nAzure authentication is handled via the `azure` module through\na connection string.", "type": "object", "properties": {"connection_string": {"title": "Connection String", "description": "Includes the authorization information required.", "type": "string", "writeOnly": true, "format": "password"}}, "required": ["connection_string"], "block_type_slug": "azure-cosmos-db-credentials", "secret_fields": ["connection_string"]}','72c094a2-b5e2-41bc-b908-b9ec3082d734','sha256:2f9f6e6f6c2eb570a05113638e6237fe74f7684993a351018657211d4705a83a','[]','0.3.7');
INSERT INTO "block_schema" VALUES('bbf7d67f-ea39-4120-8298-be67447c1c12','2026-11-26 20:19:09.512219','2026-11-26 20:19:09.512241','{"title": "AzureMlCredentials", "description": "Block used to manage authentication with AzureML. Azure authentication is\nhandled via the `azure` module.", "type": "object", "properties": {"tenant_id": {"title": "Tenant Id", "description": "The active directory tenant that the service identity belongs to.", "type": "string"}, "service_principal_id": {"title": "Service Principal Id", "description": "The service principal ID.", "type": "string"}, "service_principal_password": {"title": "Service Principal Password", "description": "The service principal password/key.", "type": "string", "writeOnly": true, "format": "password"}, "subscription_id": {"title": "Subscription Id", "description": "The Azure subscription ID containing the workspace, in format: ''00000000-0000-0000-0000-000000000000''.", "type": "string"}, "resource_group": {"title": "Resource Group", "description": "The resource group containing the workspace.", "type": "string"}, "workspace_name": {"title": "Workspace Name", "description": "The existing workspace name.", "type": "string"}}, "required": ["tenant_id", "service_principal_id", "service_principal_password", "subscription_id", "resource_group", "workspace_name"], "block_type_slug": "azureml-credentials", "secret_fields": ["service_principal_password"]}','4fda1af6-b408-4f2f-aa30-a0550efdfbb9','sha256:11338ccb5cd90992ac378f9b7a73cbf1942fae58343ac2026b3718ed688b52e6','[]','0.3.7');
INSERT INTO "block_schema" VALUES('f5177f54-e9d9-45b9-b642-3226bb9aae4c','2026-11-26 20:19:09.640317','2026-11-26 20:19:09.640340','{"title": "BitBucketCredentials", "description": "Store BitBucket credentials to interact with private BitBucket repositories.", "type": "object", "properties": {"token": {"title": "Token", "description": "A BitBucket Personal Access Token - required for private repositories.", "name": "Personal Access Token", "example": "x-token-auth:my-token", "type": "string", "writeOnly": true, "format": "password"}, "username": {"title": "Username", "description": "Identification name unique across entire BitBucket site.", "type": "string"}, "password": {"title": "Password", "description": "The password to authenticate to BitBucket.", "type": "string", "writeOnly": true, "format": "password"}, "url": {"title": "URL", "description": "The base URL of your BitBucket instance.", "default": "https://api.bitbucket.org/", "type": "string"}}, "block_type_slug": "bitbucket-credentials", "secret_fields": ["token", "password"]}','073655e1-d9f8-4a82-930b-d945a7b4de08','sha256:ef96bdc56cde651f152e3f8938018d53d725b25b5ae98777872c0962250ba0fc','[]','0.2.2');
INSERT INTO "block_schema" VALUES('905ba024-e518-44a0-8202-a5583d57c2b4','2026-11-26 20:19:09.771110','2026-11-26 20:19:09.771134','{"title": "BitBucketRepository", "description": "Interact with files stored in BitBucket repositories.", "type": "object", "properties": {"repository": {"title": "Repository", "description": "The URL of a BitBucket repository to read from in HTTPS format", "type": "string"}, "reference": {"title": "Reference", "description": "An optional reference to pin to; can be a branch or tag.", "type": "string"}, "bitbucket_credentials": {"title": "Bitbucket Credentials", "description": "An optional BitBucketCredentials block for authenticating with private BitBucket repos.", "allOf": [{"$ref": "#/definitions/BitBucketCredentials"}]}}, "required": ["repository"], "block_type_slug": "bitbucket-repository", "secret_fields": ["bitbucket_credentials.token", "bitbucket_credentials.password"]}','0301e09f-b71e-4533-9577-0ea3e39c7404','sha256:b159a8f21358b694f13fb67b73f20bf3f8b74138940fc0f16ab08107e78d5237','["get-directory"]','0.2.2');
INSERT INTO "block_schema" VALUES('8c091c81-471a-4ae5-9ff3-86c39d4d962d','2026-11-26 20:19:10.073826','2026-11-26 20:19:10.073843','{"title": "DatabricksCredentials", "description": "Block used to manage Databricks authentication.", "type": "object", "properties": {"databricks_instance": {"title": "Databricks Instance", "description": "Databricks instance used in formatting the endpoint URL.", "type": "string"}, "token": {"title": "Token", "description": "The token to authenticate with Databricks.", "type": "string", "writeOnly": true, "format": "password"}, "client_kwargs": {"title": "Client Kwargs", "description": "Additional keyword arguments to pass to AsyncClient.", "type": "object"}}, "required": ["databricks_instance", "token"], "block_type_slug": "databricks-credentials", "secret_fields": ["token"]}','41af4174-3eb1-4561-94a2-cc5493541774','sha256:58bae1446ee7a01ec90d15cf756f8acc221329e3b3580b077b508ff0f2425e35','[]','0.2.3');
INSERT INTO "block_schema" VALUES('d4f57b58-9ef7-4205-9b77-bde797bc119b','2026-11-26 20:19:10.215610','2026-11-26 20:19:10.215626','{"title": "BigQueryTargetConfigs", "description": "dbt CLI target configs containing credentials and settings, specific to BigQuery.", "type": "object", "properties": {"extras": {"title": "Extras", "description": "Extra target configs'' keywords, not yet exposed in prefect-dbt, but available in dbt.", "type": "object"}, "allow_field_overrides": {"title": "Allow Field Overrides", "description": "If enabled, fields from dbt target configs will override fields provided in extras and credentials.", "default": false, "type": "boolean"}, "type": {"title": "Type", "description": "The type of target.", "default": "bigquery", "enum": ["bigquery"], "type": "string"}, "schema": {"title": "Schema", "description": "The schema that dbt will build objects into; in BigQuery, a schema is actually a dataset.", "type": "string"}, "threads": {"title": "Threads", "description": "The number of threads representing the max number of paths through the graph dbt may work on at once.", "default": 4, "type": "integer"}, "project": {"title": "Project", "description": "The project to use.", "type": "string"}, "credentials": {"title": "Credentials", "description": "The credentials to use to authenticate.", "allOf": [{"$ref": "#/definitions/GcpCredentials"}]}}, "required": ["schema"], "block_type_slug": "dbt-cli-bigquery-target-configs", "secret_fields": ["credentials.service_account_info.*"]}','187aa1be-3730-4668-8d7f-f94644ad40c3','sha256:842c5dc7d4d1557eedff36982eafeda7b0803915942f72224a7f627efdbe5ff5','[]','0.4.1');
INSERT INTO "block_schema" VALUES('1dbe0200-18d0-4be7-baef-8c7494cad3f2','2026-11-26 20:19:10.472565','2026-11-26 20:19:10.472585','{"title": "GcpCredentials", "description": "Block used to manage authentication with GCP. Google authentication is\nhandled via the `google.oauth2` module or through the CLI.\nSpecify either one of service `account_file` or `service_account_info`; if both\nare not specified, the client will try to detect the credentials following Google''s\n[Application Default Credentials](https://cloud.google.com/docs/authentication/application-default-credentials).\nSee Google''s [Authentication documentation](https://cloud.google.com/docs/authentication#service-accounts)\nfor details on inference and recommended authentication patterns.", "type": "object", "properties": {"service_account_file": {"title": "Service Account File", "description": "Path to the service account JSON keyfile.", "type": "string", "format": "path"}, "service_account_info": {"title": "Service Account Info", "description": "The contents of the keyfile as a dict.", "type": "object"}, "project": {"title": "Project", "description": "The GCP project to use for the client.", "type": "string"}}, "block_type_slug": "gcp-credentials", "secret_fields": ["service_account_info.*"]}','12a9e4d2-b9f6-44a9-ad57-020c3ac04c11','sha256:f764f9c506a2bed9e5ed7cc9083d06d95f13c01c8c9a9e45bae5d9b4dc522624','[]','non-versioned');
INSERT INTO "block_schema" VALUES('2dd71504-8513-4d25-8acc-f34b0ea40d60','2026-11-26 20:19:10.644636','2026-11-26 20:19:10.644656','{"title": "GlobalConfigs", "description": "Global configs control things like the visual output\nof logs, the manner in which dbt parses your project,\nand what to do when dbt finds a version mismatch\nor a failing model. Docs can be found [here](\nhttps://docs.getdbt.com/reference/global-configs).", "type": "object", "properties": {"extras": {"title": "Extras", "description": "Extra target configs'' keywords, not yet exposed in prefect-dbt, but available in dbt.", "type": "object"}, "allow_field_overrides": {"title": "Allow Field Overrides", "description": "If enabled, fields from dbt target configs will override fields provided in extras and credentials.", "default": false, "type": "boolean"}, "send_anonymous_usage_stats": {"title": "Send Anonymous Usage Stats", "description": "Whether usage stats are sent to dbt.", "type": "boolean"}, "use_colors": {"title": "Use Colors", "description": "Colorize the output it prints in your terminal.", "type": "boolean"}, "partial_parse": {"title": "Partial Parse", "description": "When partial parsing is enabled, dbt will use an stored internal manifest to determine which files have been changed (if any) since it last parsed the project.", "type": "boolean"}, "printer_width": {"title": "Printer Width", "description": "Length of characters before starting a new line.", "type": "integer"}, "write_json": {"title": "Write Json", "description": "Determines whether dbt writes JSON artifacts to the target/ directory.", "type": "boolean"}, "warn_error": {"title": "Warn Error", "description": "Whether to convert dbt warnings into errors.", "type": "boolean"}, "log_format": {"title": "Log Format", "description": "The LOG_FORMAT config specifies how dbt''s logs should be formatted. If the value of this config is json, dbt will output fully structured logs in JSON format.", "type": "string"}, "debug": {"title": "Debug", "description": "Whether to redirect dbt''s debug logs to standard out.", "type": "boolean"}, "version_check": {"title": "Version Check", "description": "Whether to raise an error if a project''s version is used with an incompatible dbt version.", "type": "boolean"}, "fail_fast": {"title": "Fail Fast", "description": "Make dbt exit immediately if a single resource fails to build.", "type": "boolean"}, "use_experimental_parser": {"title": "Use Experimental Parser", "description": "Opt into the latest experimental version of the static parser.", "type": "boolean"}, "static_parser": {"title": "Static Parser", "description": "Whether to use the [static parser](https://docs.getdbt.com/reference/parsing#static-parser).", "type": "boolean"}}, "block_type_slug": "dbt-cli-global-configs", "secret_fields": []}','af89f35e-1a75-4822-aafe-c6bc737305ee','sha256:63df9d18a1aafde1cc8330cd49f81f6600b4ce6db92955973bbf341cc86e916d','[]','0.4.1');
INSERT INTO "block_schema" VALUES('e9034876-1261-4211-a0f2-69f69d9def1c','2026-11-26 20:19:10.760525','2026-11-26 20:19:10.760545','{"title": "PostgresTargetConfigs", "description": "dbt CLI target configs containing credentials and settings specific to Postgres.", "type": "object", "properties": {"extras": {"title": "Extras", "description": "Extra target configs'' keywords, not yet exposed in prefect-dbt, but available in dbt.", "type": "object"}, "allow_field_overrides": {"title": "Allow Field Overrides", "description": "If enabled, fields from dbt target configs will override fields provided in extras and credentials.", "default": false, "type": "boolean"}, "type": {"title": "Type", "description": "The type of the target.", "default": "postgres", "enum": ["postgres"], "type": "string"}, "schema": {"title": "Schema", "description": "The schema that dbt will build objects into; in BigQuery, a schema is actually a dataset.", "type": "string"}, "threads": {"title": "Threads", "description": "The number of threads representing the max number of paths through the graph dbt may work on at once.", "default": 4, "type": "integer"}, "credentials": {"title": "Credentials", "description": "The credentials to use to authenticate; if there are duplicate keys between credentials and TargetConfigs, e.g. schema, an error will be raised.", "anyOf": [{"$ref": "#/definitions/SqlAlchemyConnector"}, {"$ref": "#/definitions/DatabaseCredentials"}]}}, "required": ["schema", "credentials"], "block_type_slug": "dbt-cli-postgres-target-configs", "secret_fields": ["credentials.connection_info.password", "credentials.password"], "definitions": {"AsyncDriver": {"title": "AsyncDriver", "description": "Known dialects with their corresponding async drivers.\n\nAttributes:\n    POSTGRESQL_ASYNCPG (Enum): [postgresql+asyncpg](https://docs.sqlalchemy.org/en/14/dialects/postgresql.html#module-sqlalchemy.dialects.postgresql.asyncpg)\n\n    SQLITE_AIOSQLITE (Enum): [sqlite+aiosqlite](https://docs.sqlalchemy.org/en/14/dialects/sqlite.html#module-sqlalchemy.dialects.sqlite.aiosqlite)\n\n    MYSQL_ASYNCMY (Enum): [mysql+asyncmy](https://docs.sqlalchemy.org/en/14/dialects/mysql.html#module-sqlalchemy.dialects.mysql.asyncmy)\n    MYSQL_AIOMYSQL (Enum): [mysql+aiomysql](https://docs.sqlalchemy.org/en/14/dialects/mysql.html#module-sqlalchemy.dialects.mysql.aiomysql)", "enum": ["postgresql+asyncpg", "sqlite+aiosqlite", "mysql+asyncmy", "mysql+aiomysql"]}, "SyncDriver": {"title": "SyncDriver", "description": "Known dialects with their corresponding sync drivers.\n\nAttributes:\n    POSTGRESQL_PSYCOPG2 (Enum): [postgresql+psycopg2](https://docs.sqlalchemy.org/en/14/dialects/postgresql.html#module-sqlalchemy.dialects.postgresql.psycopg2)\n    POSTGRESQL_PG8000 (Enum): [postgresql+pg8000](https://docs.sqlalchemy.org/en/14/dialects/postgresql.html#module-sqlalchemy.dialects.postgresql.pg8000)\n    POSTGRESQL_PSYCOPG2CFFI (Enum): [postgresql+psycopg2cffi](https://docs.sqlalchemy.org/en/14/dialects/postgresql.html#module-sqlalchemy.dialects.postgresql.psycopg2cffi)\n    POSTGRESQL_PYPOSTGRESQL (Enum): [postgresql+pypostgresql](https://docs.sqlalchemy.org/en/14/dialects/postgresql.html#module-sqlalchemy.dialects.postgresql.pypostgresql)\n    POSTGRESQL_PYGRESQL (Enum): [postgresql+pygresql](https://docs.sqlalchemy.org/en/14/dialects/postgresql.html#module-sqlalchemy.dialects.postgresql.pygresql)\n\n    MYSQL_MYSQLDB (Enum): [mysql+mysqldb](https://docs.sqlalchemy.org/en/14/dialects/mysql.html#module-sqlalchemy.dialects.mysql.mysqldb)\n    MYSQL_PYMYSQL (Enum): [mysql+pymysql](https://docs.sqlalchemy.org/en/14/dialects/mysql.html#module-sqlalchemy.dialects.mysql.pymysql)\n    MYSQL_MYSQLCONNECTOR (Enum): [mysql+mysqlconnector](https://docs.sqlalchemy.org/en/14/dialects/mysql.html#module-sqlalchemy.dialects.mysql.mysqlconnector)\n    MYSQL_CYMYSQL (Enum): [mysql+cymysql](https://docs.sqlalchemy.org/en/14/dialects/mysql.html#module-sqlalchemy.dialects.mysql.cymysql)\n    MYSQL_OURSQL (Enum): [mysql+oursql](https://docs.sqlalchemy.org/en/14/dialects/mysql.html#module-sqlalchemy.dialects.mysql.oursql)\n    MYSQL_PYODBC (Enum): [mysql+pyodbc](https://docs.sqlalchemy.org/en/14/dialects/mysql.html#module-sqlalchemy.dialects.mysql.pyodbc)\n\n    SQLITE_PYSQLITE (Enum): [sqlite+pysqlite](https://docs.sqlalchemy.org/en/14/dialects/sqlite.html#module-sqlalchemy.dialects.sqlite.pysqlite)\n    SQLITE_PYSQLCIPHER (Enum): [sqlite+pysqlcipher](https://docs.sqlalchemy.org/en/14/dialects/sqlite.html#module-sqlalchemy.dialects.sqlite.pysqlcipher)\n\n    ORACLE_CX_ORACLE (Enum): [oracle+cx_oracle](https://docs.sqlalchemy.org/en/14/dialects/oracle.html#module-sqlalchemy.dialects.oracle.cx_oracle)\n\n    MSSQL_PYODBC (Enum): [mssql+pyodbc](https://docs.sqlalchemy.org/en/14/dialects/mssql.html#module-sqlalchemy.dialects.mssql.pyodbc)\n    MSSQL_MXODBC (Enum): [mssql+mxodbc](https://docs.sqlalchemy.org/en/14/dialects/mssql.html#module-sqlalchemy.dialects.mssql.mxodbc)\n    MSSQL_PYMSSQL (Enum): [mssql+pymssql](https://docs.sqlalchemy.org/en/14/dialects/mssql.html#module-sqlalchemy.dialects.mssql.pymssql)", "enum": ["postgresql+psycopg2", "postgresql+pg8000", "postgresql+psycopg2cffi", "postgresql+pypostgresql", "postgresql+pygresql", "mysql+mysqldb", "mysql+pymysql", "mysql+mysqlconnector", "mysql+cymysql", "mysql+oursql", "mysql+pyodbc", "sqlite+pysqlite", "sqlite+pysqlcipher", "oracle+cx_oracle", "mssql+pyodbc", "mssql+mxodbc", "mssql+pymssql"]}, "ConnectionComponents": {"title": "ConnectionComponents", "description": "Parameters to use to create a SQLAlchemy engine URL.\n\nAttributes:\n    driver: The driver name to use.\n    database: The name of the database to use.\n    username: The user name used to authenticate.\n    password: The password used to authenticate.\n    host: The host address of the database.\n    port: The port to connect to the database.\n    query: A dictionary of string keys to string values to be passed to the dialect\n        and/or the DBAPI upon connect.", "type": "object", "properties": {"driver": {"title": "Driver", "description": "The driver name to use.", "anyOf": [{"$ref": "#/definitions/AsyncDriver"}, {"$ref": "#/definitions/SyncDriver"}, {"type": "string"}]}, "database": {"title": "Database", "description": "The name of the database to use.", "type": "string"}, "username": {"title": "Username", "description": "The user name used to authenticate.", "type": "string"}, "password": {"title": "Password", "description": "The password used to authenticate.", "type": "string", "writeOnly": true, "format": "password"}, "host": {"title": "Host", "description": "The host address of the database.", "type": "string"}, "port": {"title": "Port", "description": "The port to connect to the database.", "type": "string"}, "query": {"title": "Query", "description": "A dictionary of string keys to string values to be passed to the dialect and/or the DBAPI upon connect. To specify non-string parameters to a Python DBAPI directly, use connect_args.", "type": "object", "additionalProperties": {"type": "string"}}}, "required": ["driver", "database"]}}}','99f3596c-276b-4fc7-b509-7d25fdc24703','sha256:1552a2d5c102961df4082329f39c10b8a51e26ee687148efd6d71ce8be8850c0','[]','0.4.1');
INSERT INTO "block_schema" VALUES('d7da5ee6-756a-4f65-b258-89c43063abe9','2026-11-26 20:19:10.944724','2026-11-26 20:19:10.944741','{"title": "SqlAlchemyConnector", "description": "Block used to manage authentication with a database.\n\nUpon instantiating, an engine is created and maintained for the life of\nthe object until the close method is called.\n\nIt is recommended to use this block as a context manager, which will automatically\nclose the engine and its connections when the context is exited.\n\nIt is also recommended that this block is loaded and consumed within a single task\nor flow because if the block is passed across separate tasks and flows,\nthe state of the block''s connection and cursor could be lost.", "type": "object", "properties": {"connection_info": {"title": "Connection Info", "description": "SQLAlchemy URL to create the engine; either create from components or create from a string.", "anyOf": [{"$ref": "#/definitions/ConnectionComponents"}, {"type": "string", "minLength": 1, "maxLength": 65536, "format": "uri"}]}, "connect_args": {"title": "Additional Connection Arguments", "description": "The options which will be passed directly to the DBAPI''s connect() method as additional keyword arguments.", "type": "object"}, "fetch_size": {"title": "Fetch Size", "description": "The number of rows to fetch at a time.", "default": 1, "type": "integer"}}, "required": ["connection_info"], "block_type_slug": "sqlalchemy-connector", "secret_fields": ["connection_info.password"], "definitions": {"ConnectionComponents": {"title": "ConnectionComponents", "description": "Parameters to use to create a SQLAlchemy engine URL.\n\nAttributes:\n    driver: The driver name to use.\n    database: The name of the database to use.\n    username: The user name used to authenticate.\n    password: The password used to authenticate.\n    host: The host address of the database.\n    port: The port to connect to the database.\n    query: A dictionary of string keys to string values to be passed to the dialect\n        and/or the DBAPI upon connect.", "type": "object", "properties": {"driver": {"title": "Driver", "description": "The driver name to use.", "anyOf": [{"$ref": "#/definitions/AsyncDriver"}, {"$ref": "#/definitions/SyncDriver"}, {"type": "string"}]}, "database": {"title": "Database", "description": "The name of the database to use.", "type": "string"}, "username": {"title": "Username", "description": "The user name used to authenticate.", "type": "string"}, "password": {"title": "Password", "description": "The password used to authenticate.", "type": "string", "writeOnly": true, "format": "password"}, "host": {"title": "Host", "description": "The host address of the database.", "type": "string"}, "port": {"title": "Port", "description": "The port to connect to the database.", "type": "string"}, "query": {"title": "Query", "description": "A dictionary of string keys to string values to be passed to the dialect and/or the DBAPI upon connect. To specify non-string parameters to a Python DBAPI directly, use connect_args.", "type": "object", "additionalProperties": {"type": "string"}}}, "required": ["driver", "database"]}, "AsyncDriver": {"title": "AsyncDriver", "description": "Known dialects with their corresponding async drivers.\n\nAttributes:\n    POSTGRESQL_ASYNCPG (Enum): [postgresql+asyncpg](https://docs.sqlalchemy.org/en/14/dialects/postgresql.html#module-sqlalchemy.dialects.postgresql.asyncpg)\n\n    SQLITE_AIOSQLITE (Enum): [sqlite+aiosqlite](https://docs.sqlalchemy.org/en/14/dialects/sqlite.html#module-sqlalchemy.dialects.sqlite.aiosqlite)\n\n    MYSQL_ASYNCMY (Enum): [mysql+asyncmy](https://docs.sqlalchemy.org/en/14/dialects/mysql.html#module-sqlalchemy.dialects.mysql.asyncmy)\n    MYSQL_AIOMYSQL (Enum): [mysql+aiomysql](https://docs.sqlalchemy.org/en/14/dialects/mysql.html#module-sqlalchemy.dialects.mysql.aiomysql)", "enum": ["postgresql+asyncpg", "sqlite+aiosqlite", "mysql+asyncmy", "mysql+aiomysql"]}, "SyncDriver": {"title": "SyncDriver", "description": "Known dialects with their corresponding sync drivers.\n\nAttributes:\n    POSTGRESQL_PSYCOPG2 (Enum): [postgresql+psycopg2](https://docs.sqlalchemy.org/en/14/dialects/postgresql.html#module-sqlalchemy.dialects.postgresql.psycopg2)\n    POSTGRESQL_PG8000 (Enum): [postgresql+pg8000](https://docs.sqlalchemy.org/en/14/dialects/postgresql.html#module-sqlalchemy.dialects.postgresql.pg8000)\n    POSTGRESQL_PSYCOPG2CFFI (Enum): [postgresql+psycopg2cffi](https://docs.sqlalchemy.org/en/14/dialects/postgresql.html#module-sqlalchemy.dialects.postgresql.psycopg2cffi)\n    POSTGRESQL_PYPOSTGRESQL (Enum): [postgresql+pypostgresql](https://docs.sqlalchemy.org/en/14/dialects/postgresql.html#module-sqlalchemy.dialects.postgresql.pypostgresql)\n    POSTGRESQL_PYGRESQL (Enum): [postgresql+pygresql](https://docs.sqlalchemy.org/en/14/dialects/postgresql.html#module-sqlalchemy.dialects.postgresql.pygresql)\n\n    MYSQL_MYSQLDB (Enum): [mysql+mysqldb](https://docs.sqlalchemy.org/en/14/dialects/mysql.html#module-sqlalchemy.dialects.mysql.mysqldb)\n    MYSQL_PYMYSQL (Enum): [mysql+pymysql](https://docs.sqlalchemy.org/en/14/dialects/mysql.html#module-sqlalchemy.dialects.mysql.pymysql)\n    MYSQL_MYSQLCONNECTOR (Enum): [mysql+mysqlconnector](https://docs.sqlalchemy.org/en/14/dialects/mysql.html#module-sqlalchemy.dialects.mysql.mysqlconnector)\n    MYSQL_CYMYSQL (Enum): [mysql+cymysql](https://docs.sqlalchemy.org/en/14/dialects/mysql.html#module-sqlalchemy.dialects.mysql.cymysql)\n    MYSQL_OURSQL (Enum): [mysql+oursql](https://docs.sqlalchemy.org/en/14/dialects/mysql.html#module-sqlalchemy.dialects.mysql.oursql)\n    MYSQL_PYODBC (Enum): [mysql+pyodbc](https://docs.sqlalchemy.org/en/14/dialects/mysql.html#module-sqlalchemy.dialects.mysql.pyodbc)\n\n    SQLITE_PYSQLITE (Enum): [sqlite+pysqlite](https://docs.sqlalchemy.org/en/14/dialects/sqlite.html#module-sqlalchemy.dialects.sqlite.pysqlite)\n    SQLITE_PYSQLCIPHER (Enum): [sqlite+pysqlcipher](https://docs.sqlalchemy.org/en/14/dialects/sqlite.html#module-sqlalchemy.dialects.sqlite.pysqlcipher)\n\n    ORACLE_CX_ORACLE (Enum): [oracle+cx_oracle](https://docs.sqlalchemy.org/en/14/dialects/oracle.html#module-sqlalchemy.dialects.oracle.cx_oracle)\n\n    MSSQL_PYODBC (Enum): [mssql+pyodbc](https://docs.sqlalchemy.org/en/14/dialects/mssql.html#module-sqlalchemy.dialects.mssql.pyodbc)\n    MSSQL_MXODBC (Enum): [mssql+mxodbc](https://docs.sqlalchemy.org/en/14/dialects/mssql.html#module-sqlalchemy.dialects.mssql.mxodbc)\n    MSSQL_PYMSSQL (Enum): [mssql+pymssql](https://docs.sqlalchemy.org/en/14/dialects/mssql.html#module-sqlalchemy.dialects.mssql.pymssql)", "enum": ["postgresql+psycopg2", "postgresql+pg8000", "postgresql+psycopg2cffi", "postgresql+pypostgresql", "postgresql+pygresql", "mysql+mysqldb", "mysql+pymysql", "mysql+mysqlconnector", "mysql+cymysql", "mysql+oursql", "mysql+pyodbc", "sqlite+pysqlite", "sqlite+pysqlcipher", "oracle+cx_oracle", "mssql+pyodbc", "mssql+mxodbc", "mssql+pymssql"]}}}','ff880278-faa4-4dcf-993d-3f26204270b3','sha256:01e6c0bdaac125860811b201f5a5e98ffefd5f8a49f1398b6996aec362643acc','[]','non-versioned');
INSERT INTO "block_schema" VALUES('91666e77-b88b-42ef-aed2-ea1ea1af67db','2026-11-26 20:19:11.116501','2026-11-26 20:19:11.116521','{"title": "DatabaseCredentials", "description": "Block used to manage authentication with a database.", "type": "object", "properties": {"driver": {"title": "Driver", "description": "The driver name to use.", "anyOf": [{"$ref": "#/definitions/AsyncDriver"}, {"$ref": "#/definitions/SyncDriver"}, {"type": "string"}]}, "username": {"title": "Username", "description": "The user name used to authenticate.", "type": "string"}, "password": {"title": "Password", "description": "The password used to authenticate.", "type": "string", "writeOnly": true, "format": "password"}, "database": {"title": "Database", "description": "The name of the database to use.", "type": "string"}, "host": {"title": "Host", "description": "The host address of the database.", "type": "string"}, "port": {"title": "Port", "description": "The port to connect to the database.", "type": "string"}, "query": {"title": "Query", "description": "A dictionary of string keys to string values to be passed to the dialect and/or the DBAPI upon connect. To specify non-string parameters to a Python DBAPI directly, use connect_args.", "type": "object", "additionalProperties": {"type": "string"}}, "url": {"title": "Url", "description": "Manually create and provide a URL to create the engine, this is useful for external dialects, e.g. Snowflake, because some of the params, such as ''warehouse'', is not directly supported in the vanilla `sqlalchemy.engine.URL.create` method; do not provide this alongside with other URL params as it will raise a `ValueError`.", "minLength": 1, "maxLength": 65536, "format": "uri", "type": "string"}, "connect_args": {"title": "Connect Args", "description": "The options which will be passed directly to the DBAPI''s connect() method as additional keyword arguments.", "type": "object"}}, "block_type_slug": "database-credentials", "secret_fields": ["password"], "definitions": {"AsyncDriver": {"title": "AsyncDriver", "description": "Known dialects with their corresponding async drivers.\n\nAttributes:\n    POSTGRESQL_ASYNCPG (Enum): [postgresql+asyncpg](https://docs.sqlalchemy.org/en/14/dialects/postgresql.html#module-sqlalchemy.dialects.postgresql.asyncpg)\n\n    SQLITE_AIOSQLITE (Enum): [sqlite+aiosqlite](https://docs.sqlalchemy.org/en/14/dialects/sqlite.html#module-sqlalchemy.dialects.sqlite.aiosqlite)\n\n    MYSQL_ASYNCMY (Enum): [mysql+asyncmy](https://docs.sqlalchemy.org/en/14/dialects/mysql.html#module-sqlalchemy.dialects.mysql.asyncmy)\n    MYSQL_AIOMYSQL (Enum): [mysql+aiomysql](https://docs.sqlalchemy.org/en/14/dialects/mysql.html#module-sqlalchemy.dialects.mysql.aiomysql)", "enum": ["postgresql+asyncpg", "sqlite+aiosqlite", "mysql+asyncmy", "mysql+aiomysql"]}, "SyncDriver": {"title": "SyncDriver", "description": "Known dialects with their corresponding sync drivers.\n\nAttributes:\n    POSTGRESQL_PSYCOPG2 (Enum): [postgresql+psycopg2](https://docs.sqlalchemy.org/en/14/dialects/postgresql.html#module-sqlalchemy.dialects.postgresql.psycopg2)\n    POSTGRESQL_PG8000 (Enum): [postgresql+pg8000](https://docs.sqlalchemy.org/en/14/dialects/postgresql.html#module-sqlalchemy.dialects.postgresql.pg8000)\n    POSTGRESQL_PSYCOPG2CFFI (Enum): [postgresql+psycopg2cffi](https://docs.sqlalchemy.org/en/14/dialects/postgresql.html#module-sqlalchemy.dialects.postgresql.psycopg2cffi)\n    POSTGRESQL_PYPOSTGRESQL (Enum): [postgresql+pypostgresql](https://docs.sqlalchemy.org/en/14/dialects/postgresql.html#module-sqlalchemy.dialects.postgresql.pypostgresql)\n    POSTGRESQL_PYGRESQL (Enum): [postgresql+pygresql](https://docs.sqlalchemy.org/en/14/dialects/postgresql.html#module-sqlalchemy.dialects.postgresql.pygresql)\n\n    MYSQL_MYSQLDB (Enum): [mysql+mysqldb](https://docs.sqlalchemy.org/en/14/dialects/mysql.html#module-sqlalchemy.dialects.mysql.mysqldb)\n    MYSQL_PYMYSQL (Enum): [mysql+pymysql](https://docs.sqlalchemy.org/en/14/dialects/mysql.html#module-sqlalchemy.dialects.mysql.pymysql)\n    MYSQL_MYSQLCONNECTOR (Enum): [mysql+mysqlconnector](https://docs.sqlalchemy.org/en/14/dialects/mysql.html#module-sqlalchemy.dialects.mysql.mysqlconnector)\n    MYSQL_CYMYSQL (Enum): [mysql+cymysql](https://docs.sqlalchemy.org/en/14/dialects/mysql.html#module-sqlalchemy.dialects.mysql.cymysql)\n    MYSQL_OURSQL (Enum): [mysql+oursql](https://docs.sqlalchemy.org/en/14/dialects/mysql.html#module-sqlalchemy.dialects.mysql.oursql)\n    MYSQL_PYODBC (Enum): [mysql+pyodbc](https://docs.sqlalchemy.org/en/14/dialects/mysql.html#module-sqlalchemy.dialects.mysql.pyodbc)\n\n    SQLITE_PYSQLITE (Enum): [sqlite+pysqlite](https://docs.sqlalchemy.org/en/14/dialects/sqlite.html#module-sqlalchemy.dialects.sqlite.pysqlite)\n    SQLITE_PYSQLCIPHER (Enum): [sqlite+pysqlcipher](https://docs.sqlalchemy.org/en/14/dialects/sqlite.html#module-sqlalchemy.dialects.sqlite.pysqlcipher)\n\n    ORACLE_CX_ORACLE (Enum): [oracle+cx_oracle](https://docs.sqlalchemy.org/en/14/dialects/oracle.html#module-sqlalchemy.dialects.oracle.cx_oracle)\n\n    MSSQL_PYODBC (Enum): [mssql+pyodbc](https://docs.sqlalchemy.org/en/14/dialects/mssql.html#module-sqlalchemy.dialects.mssql.pyodbc)\n    MSSQL_MXODBC (Enum): [mssql+mxodbc](https://docs.sqlalchemy.org/en/14/dialects/mssql.html#module-sqlalchemy.dialects.mssql.mxodbc)\n    MSSQL_PYMSSQL (Enum): [mssql+pymssql](https://docs.sqlalchemy.org/en/14/dialects/mssql.html#module-sqlalchemy.dialects.mssql.pymssql)", "enum": ["postgresql+psycopg2", "postgresql+pg8000", "postgresql+psycopg2cffi", "postgresql+pypostgresql", "postgresql+pygresql", "mysql+mysqldb", "mysql+pymysql", "mysql+mysqlconnector", "mysql+cymysql", "mysql+oursql", "mysql+pyodbc", "sqlite+pysqlite", "sqlite+pysqlcipher", "oracle+cx_oracle", "mssql+pyodbc", "mssql+mxodbc", "mssql+pymssql"]}, "ConnectionComponents": {"title": "ConnectionComponents", "description": "Parameters to use to create a SQLAlchemy engine URL.\n\nAttributes:\n    driver: The driver name to use.\n    database: The name of the database to use.\n    username: The user name used to authenticate.\n    password: The password used to authenticate.\n    host: The host address of the database.\n    port: The port to connect to the database.\n    query: A dictionary of string keys to string values to be passed to the dialect\n        and/or the DBAPI upon connect.", "type": "object", "properties": {"driver": {"title": "Driver", "description": "The driver name to use.", "anyOf": [{"$ref": "#/definitions/AsyncDriver"}, {"$ref": "#/definitions/SyncDriver"}, {"type": "string"}]}, "database": {"title": "Database", "description": "The name of the database to use.", "type": "string"}, "username": {"title": "Username", "description": "The user name used to authenticate.", "type": "string"}, "password": {"title": "Password", "description": "The password used to authenticate.", "type": "string", "writeOnly": true, "format": "password"}, "host": {"title": "Host", "description": "The host address of the database.", "type": "string"}, "port": {"title": "Port", "description": "The port to connect to the database.", "type": "string"}, "query": {"title": "Query", "description": "A dictionary of string keys to string values to be passed to the dialect and/or the DBAPI upon connect. To specify non-string parameters to a Python DBAPI directly, use connect_args.", "type": "object", "additionalProperties": {"type": "string"}}}, "required": ["driver", "database"]}}}','1f2acc0c-25e7-4706-8620-b70e42a29cd9','sha256:64175f83f2ae15bef7893a4d9a02658f2b5288747d54594ca6d356dc42e9993c','[]','non-versioned');
INSERT INTO "block_schema" VALUES('52945f6d-f8ef-434d-a974-18cc9720889b','2026-11-26 20:19:11.320772','2026-11-26 20:19:11.320792','{"title": "DbtCliProfile", "description": "Profile for use across dbt CLI tasks and flows.", "type": "object", "properties": {"name": {"title": "Name", "description": "Profile name used for populating profiles.yml.", "type": "string"}, "target": {"title": "Target", "description": "The default target your dbt project will use.", "type": "string"}, "target_configs": {"title": "Target Configs", "description": "Target configs contain credentials and settings, specific to the warehouse you''re connecting to.", "anyOf": [{"$ref": "#/definitions/SnowflakeTargetConfigs"}, {"$ref": "#/definitions/BigQueryTargetConfigs"}, {"$ref": "#/definitions/PostgresTargetConfigs"}, {"$ref": "#/definitions/TargetConfigs"}]}, "global_configs": {"title": "Global Configs", "description": "Global configs control things like the visual output of logs, the manner in which dbt parses your project, and what to do when dbt finds a version mismatch or a failing model.", "allOf": [{"$ref": "#/definitions/GlobalConfigs"}]}}, "required": ["name", "target", "target_configs"], "block_type_slug": "dbt-cli-profile", "secret_fields": ["target_configs.connector.credentials.password", "target_configs.connector.credentials.private_key", "target_configs.connector.credentials.private_key_passphrase", "target_configs.connector.credentials.token", "target_configs.credentials.service_account_info.*", "target_configs.credentials.connection_info.password", "target_configs.credentials.password"], "definitions": {"AsyncDriver": {"title": "AsyncDriver", "description": "Known dialects with their corresponding async drivers.\n\nAttributes:\n    POSTGRESQL_ASYNCPG (Enum): [postgresql+asyncpg](https://docs.sqlalchemy.org/en/14/dialects/postgresql.html#module-sqlalchemy.dialects.postgresql.asyncpg)\n\n    SQLITE_AIOSQLITE (Enum): [sqlite+aiosqlite](https://docs.sqlalchemy.org/en/14/dialects/sqlite.html#module-sqlalchemy.dialects.sqlite.aiosqlite)\n\n    MYSQL_ASYNCMY (Enum): [mysql+asyncmy](https://docs.sqlalchemy.org/en/14/dialects/mysql.html#module-sqlalchemy.dialects.mysql.asyncmy)\n    MYSQL_AIOMYSQL (Enum): [mysql+aiomysql](https://docs.sqlalchemy.org/en/14/dialects/mysql.html#module-sqlalchemy.dialects.mysql.aiomysql)", "enum": ["postgresql+asyncpg", "sqlite+aiosqlite", "mysql+asyncmy", "mysql+aiomysql"]}, "SyncDriver": {"title": "SyncDriver", "description": "Known dialects with their corresponding sync drivers.\n\nAttributes:\n    POSTGRESQL_PSYCOPG2 (Enum): [postgresql+psycopg2](https://docs.sqlalchemy.org/en/14/dialects/postgresql.html#module-sqlalchemy.dialects.postgresql.psycopg2)\n    POSTGRESQL_PG8000 (Enum): [postgresql+pg8000](https://docs.sqlalchemy.org/en/14/dialects/postgresql.html#module-sqlalchemy.dialects.postgresql.pg8000)\n    POSTGRESQL_PSYCOPG2CFFI (Enum): [postgresql+psycopg2cffi](https://docs.sqlalchemy.org/en/14/dialects/postgresql.html#module-sqlalchemy.dialects.postgresql.psycopg2cffi)\n    POSTGRESQL_PYPOSTGRESQL (Enum): [postgresql+pypostgresql](https://docs.sqlalchemy.org/en/14/dialects/postgresql.html#module-sqlalchemy.dialects.postgresql.pypostgresql)\n    POSTGRESQL_PYGRESQL (Enum): [postgresql+pygresql](https://docs.sqlalchemy.org/en/14/dialects/postgresql.html#module-sqlalchemy.dialects.postgresql.pygresql)\n\n    MYSQL_MYSQLDB (Enum): [mysql+mysqldb](https://docs.sqlalchemy.org/en/14/dialects/mysql.html#module-sqlalchemy.dialects.mysql.mysqldb)\n    MYSQL_PYMYSQL (Enum): [mysql+pymysql](https://docs.sqlalchemy.org/en/14/dialects/mysql.html#module-sqlalchemy.dialects.mysql.pymysql)\n    MYSQL_MYSQLCONNECTOR (Enum): [mysql+mysqlconnector](https://docs.sqlalchemy.org/en/14/dialects/mysql.html#module-sqlalchemy.dialects.mysql.mysqlconnector)\n    MYSQL_CYMYSQL (Enum): [mysql+cymysql](https://docs.sqlalchemy.org/en/14/dialects/mysql.html#module-sqlalchemy.dialects.mysql.cymysql)\n    MYSQL_OURSQL (Enum): [mysql+oursql](https://docs.sqlalchemy.org/en/14/dialects/mysql.html#module-sqlalchemy.dialects.mysql.oursql)\n    MYSQL_PYODBC (Enum): [mysql+pyodbc](https://docs.sqlalchemy.org/en/14/dialects/mysql.html#module-sqlalchemy.dialects.mysql.pyodbc)\n\n    SQLITE_PYSQLITE (Enum): [sqlite+pysqlite](https://docs.sqlalchemy.org/en/14/dialects/sqlite.html#module-sqlalchemy.dialects.sqlite.pysqlite)\n    SQLITE_PYSQLCIPHER (Enum): [sqlite+pysqlcipher](https://docs.sqlalchemy.org/en/14/dialects/sqlite.html#module-sqlalchemy.dialects.sqlite.pysqlcipher)\n\n    ORACLE_CX_ORACLE (Enum): [oracle+cx_oracle](https://docs.sqlalchemy.org/en/14/dialects/oracle.html#module-sqlalchemy.dialects.oracle.cx_oracle)\n\n    MSSQL_PYODBC (Enum): [mssql+pyodbc](https://docs.sqlalchemy.org/en/14/dialects/mssql.html#module-sqlalchemy.dialects.mssql.pyodbc)\n    MSSQL_MXODBC (Enum): [mssql+mxodbc](https://docs.sqlalchemy.org/en/14/dialects/mssql.html#module-sqlalchemy.dialects.mssql.mxodbc)\n    MSSQL_PYMSSQL (Enum): [mssql+pymssql](https://docs.sqlalchemy.org/en/14/dialects/mssql.html#module-sqlalchemy.dialects.mssql.pymssql)", "enum": ["postgresql+psycopg2", "postgresql+pg8000", "postgresql+psycopg2cffi", "postgresql+pypostgresql", "postgresql+pygresql", "mysql+mysqldb", "mysql+pymysql", "mysql+mysqlconnector", "mysql+cymysql", "mysql+oursql", "mysql+pyodbc", "sqlite+pysqlite", "sqlite+pysqlcipher", "oracle+cx_oracle", "mssql+pyodbc", "mssql+mxodbc", "mssql+pymssql"]}, "ConnectionComponents": {"title": "ConnectionComponents", "description": "Parameters to use to create a SQLAlchemy engine URL.\n\nAttributes:\n    driver: The driver name to use.\n    database: The name of the database to use.\n    username: The user name used to authenticate.\n    password: The password used to authenticate.\n    host: The host address of the database.\n    port: The port to connect to the database.\n    query: A dictionary of string keys to string values to be passed to the dialect\n        and/or the DBAPI upon connect.", "type": "object", "properties": {"driver": {"title": "Driver", "description": "The driver name to use.", "anyOf": [{"$ref": "#/definitions/AsyncDriver"}, {"$ref": "#/definitions/SyncDriver"}, {"type": "string"}]}, "database": {"title": "Database", "description": "The name of the database to use.", "type": "string"}, "username": {"title": "Username", "description": "The user name used to authenticate.", "type": "string"}, "password": {"title": "Password", "description": "The password used to authenticate.", "type": "string", "writeOnly": true, "format": "password"}, "host": {"title": "Host", "description": "The host address of the database.", "type": "string"}, "port": {"title": "Port", "description": "The port to connect to the database.", "type": "string"}, "query": {"title": "Query", "description": "A dictionary of string keys to string values to be passed to the dialect and/or the DBAPI upon connect. To specify non-string parameters to a Python DBAPI directly, use connect_args.", "type": "object", "additionalProperties": {"type": "string"}}}, "required": ["driver", "database"]}}}','59f77228-34e2-49ba-993e-67fc8b9b377a','sha256:f55b0f96cb9e1cf2f508bb882b25d9246b351be8b0ad18140a73281674a40d6d','[]','0.4.1');
INSERT INTO "block_schema" VALUES('4aa51753-3c9b-4cca-ba24-5a153e808a6a','2026-11-26 20:19:11.624609','2026-11-26 20:19:11.624631','{"title": "SnowflakeTargetConfigs", "description": "Target configs contain credentials and\nsettings, specific to Snowflake.\nTo find valid keys, head to the [Snowflake Profile](\nhttps://docs.getdbt.com/reference/warehouse-profiles/snowflake-profile)\npage.", "type": "object", "properties": {"extras": {"title": "Extras", "description": "Extra target configs'' keywords, not yet exposed in prefect-dbt, but available in dbt.", "type": "object"}, "allow_field_overrides": {"title": "Allow Field Overrides", "description": "If enabled, fields from dbt target configs will override fields provided in extras and credentials.", "default": false, "type": "boolean"}, "type": {"title": "Type", "description": "The type of the target configs.", "default": "snowflake", "enum": ["snowflake"], "type": "string"}, "schema": {"title": "Schema", "description": "The schema to use for the target configs.", "type": "string"}, "threads": {"title": "Threads", "description": "The number of threads representing the max number of paths through the graph dbt may work on at once.", "default": 4, "type": "integer"}, "connector": {"title": "Connector", "description": "The connector to use.", "allOf": [{"$ref": "#/definitions/SnowflakeConnector"}]}}, "required": ["connector"], "block_type_slug": "dbt-cli-snowflake-target-configs", "secret_fields": ["connector.credentials.password", "connector.credentials.private_key", "connector.credentials.private_key_passphrase", "connector.credentials.token"], "definitions": {"AsyncDriver": {"title": "AsyncDriver", "description": "Known dialects with their corresponding async drivers.\n\nAttributes:\n    POSTGRESQL_ASYNCPG (Enum): [postgresql+asyncpg](https://docs.sqlalchemy.org/en/14/dialects/postgresql.html#module-sqlalchemy.dialects.postgresql.asyncpg)\n\n    SQLITE_AIOSQLITE (Enum): [sqlite+aiosqlite](https://docs.sqlalchemy.org/en/14/dialects/sqlite.html#module-sqlalchemy.dialects.sqlite.aiosqlite)\n\n    MYSQL_ASYNCMY (Enum): [mysql+asyncmy](https://docs.sqlalchemy.org/en/14/dialects/mysql.html#module-sqlalchemy.dialects.mysql.asyncmy)\n    MYSQL_AIOMYSQL (Enum): [mysql+aiomysql](https://docs.sqlalchemy.org/en/14/dialects/mysql.html#module-sqlalchemy.dialects.mysql.aiomysql)", "enum": ["postgresql+asyncpg", "sqlite+aiosqlite", "mysql+asyncmy", "mysql+aiomysql"]}, "SyncDriver": {"title": "SyncDriver", "description": "Known dialects with their corresponding sync drivers.\n\nAttributes:\n    POSTGRESQL_PSYCOPG2 (Enum): [postgresql+psycopg2](https://docs.sqlalchemy.org/en/14/dialects/postgresql.html#module-sqlalchemy.dialects.postgresql.psycopg2)\n    POSTGRESQL_PG8000 (Enum): [postgresql+pg8000](https://docs.sqlalchemy.org/en/14/dialects/postgresql.html#module-sqlalchemy.dialects.postgresql.pg8000)\n    POSTGRESQL_PSYCOPG2CFFI (Enum): [postgresql+psycopg2cffi](https://docs.sqlalchemy.org/en/14/dialects/postgresql.html#module-sqlalchemy.dialects.postgresql.psycopg2cffi)\n    POSTGRESQL_PYPOSTGRESQL (Enum): [postgresql+pypostgresql](https://docs.sqlalchemy.org/en/14/dialects/postgresql.html#module-sqlalchemy.dialects.postgresql.pypostgresql)\n    POSTGRESQL_PYGRESQL (Enum): [postgresql+pygresql](https://docs.sqlalchemy.org/en/14/dialects/postgresql.html#module-sqlalchemy.dialects.postgresql.pygresql)\n\n    MYSQL_MYSQLDB (Enum): [mysql+mysqldb](https://docs.sqlalchemy.org/en/14/dialects/mysql.html#module-sqlalchemy.dialects.mysql.mysqldb)\n    MYSQL_PYMYSQL (Enum): [mysql+pymysql](https://docs.sqlalchemy.org/en/14/dialects/mysql.html#module-sqlalchemy.dialects.mysql.pymysql)\n    MYSQL_MYSQLCONNECTOR (Enum): [mysql+mysqlconnector](https://docs.sqlalchemy.org/en/14/dialects/mysql.html#module-sqlalchemy.dialects.mysql.mysqlconnector)\n    MYSQL_CYMYSQL (Enum): [mysql+cymysql](https://docs.sqlalchemy.org/en/14/dialects/mysql.html#module-sqlalchemy.dialects.mysql.cymysql)\n    MYSQL_OURSQL (Enum): [mysql+oursql](https://docs.sqlalchemy.org/en/14/dialects/mysql.html#module-sqlalchemy.dialects.mysql.oursql)\n    MYSQL_PYODBC (Enum): [mysql+pyodbc](https://docs.sqlalchemy.org/en/14/dialects/mysql.html#module-sqlalchemy.dialects.mysql.pyodbc)\n\n    SQLITE_PYSQLITE (Enum): [sqlite+pysqlite](https://docs.sqlalchemy.org/en/14/dialects/sqlite.html#module-sqlalchemy.dialects.sqlite.pysqlite)\n    SQLITE_PYSQLCIPHER (Enum): [sqlite+pysqlcipher](https://docs.sqlalchemy.org/en/14/dialects/sqlite.html#module-sqlalchemy.dialects.sqlite.pysqlcipher)\n\n    ORACLE_CX_ORACLE (Enum): [oracle+cx_oracle](https://docs.sqlalchemy.org/en/14/dialects/oracle.html#module-sqlalchemy.dialects.oracle.cx_oracle)\n\n    MSSQL_PYODBC (Enum): [mssql+pyodbc](https://docs.sqlalchemy.org/en/14/dialects/mssql.html#module-sqlalchemy.dialects.mssql.pyodbc)\n    MSSQL_MXODBC (Enum): [mssql+mxodbc](https://docs.sqlalchemy.org/en/14/dialects/mssql.html#module-sqlalchemy.dialects.mssql.mxodbc)\n    MSSQL_PYMSSQL (Enum): [mssql+pymssql](https://docs.sqlalchemy.org/en/14/dialects/mssql.html#module-sqlalchemy.dialects.mssql.pymssql)", "enum": ["postgresql+psycopg2", "postgresql+pg8000", "postgresql+psycopg2cffi", "postgresql+pypostgresql", "postgresql+pygresql", "mysql+mysqldb", "mysql+pymysql", "mysql+mysqlconnector", "mysql+cymysql", "mysql+oursql", "mysql+pyodbc", "sqlite+pysqlite", "sqlite+pysqlcipher", "oracle+cx_oracle", "mssql+pyodbc", "mssql+mxodbc", "mssql+pymssql"]}, "ConnectionComponents": {"title": "ConnectionComponents", "description": "Parameters to use to create a SQLAlchemy engine URL.\n\nAttributes:\n    driver: The driver name to use.\n    database: The name of the database to use.\n    username: The user name used to authenticate.\n    password: The password used to authenticate.\n    host: The host address of the database.\n    port: The port to connect to the database.\n    query: A dictionary of string keys to string values to be passed to the dialect\n        and/or the DBAPI upon connect.", "type": "object", "properties": {"driver": {"title": "Driver", "description": "The driver name to use.", "anyOf": [{"$ref": "#/definitions/AsyncDriver"}, {"$ref": "#/definitions/SyncDriver"}, {"type": "string"}]}, "database": {"title": "Database", "description": "The name of the database to use.", "type": "string"}, "username": {"title": "Username", "description": "The user name used to authenticate.", "type": "string"}, "password": {"title": "Password", "description": "The password used to authenticate.", "type": "string", "writeOnly": true, "format": "password"}, "host": {"title": "Host", "description": "The host address of the database.", "type": "string"}, "port": {"title": "Port", "description": "The port to connect to the database.", "type": "string"}, "query": {"title": "Query", "description": "A dictionary of string keys to string values to be passed to the dialect and/or the DBAPI upon connect. To specify non-string parameters to a Python DBAPI directly, use connect_args.", "type": "object", "additionalProperties": {"type": "string"}}}, "required": ["driver", "database"]}}}','7c787b67-90b3-4f0e-9915-b3291db9fd6f','sha256:a70fca75226dc280c38ab0dda3679d3b0ffdee21af4463f3fb1ad6278405e370','[]','non-versioned');
INSERT INTO "block_schema" VALUES('21b71fff-aacc-4bfb-9fbb-02534104528b','2026-11-26 20:19:11.901063','2026-11-26 20:19:11.901085','{"title": "SnowflakeConnector", "description": "Perform data operations against a Snowflake database.", "type": "object", "properties": {"credentials": {"title": "Credentials", "description": "The credentials to authenticate with Snowflake.", "allOf": [{"$ref": "#/definitions/SnowflakeCredentials"}]}, "database": {"title": "Database", "description": "The name of the default database to use.", "type": "string"}, "warehouse": {"title": "Warehouse", "description": "The name of the default warehouse to use.", "type": "string"}, "schema": {"title": "Schema", "description": "The name of the default schema to use.", "type": "string"}, "fetch_size": {"title": "Fetch Size", "description": "The default number of rows to fetch at a time.", "default": 1, "type": "integer"}, "poll_frequency_s": {"title": "Poll Frequency [seconds]", "description": "The number of seconds between checking query status for long running queries.", "default": 1, "type": "integer"}}, "required": ["credentials", "database", "warehouse", "schema"], "block_type_slug": "snowflake-connector", "secret_fields": ["credentials.password", "credentials.private_key", "credentials.private_key_passphrase", "credentials.token"], "definitions": {"AsyncDriver": {"title": "AsyncDriver", "description": "Known dialects with their corresponding async drivers.\n\nAttributes:\n    POSTGRESQL_ASYNCPG (Enum): [postgresql+asyncpg](https://docs.sqlalchemy.org/en/14/dialects/postgresql.html#module-sqlalchemy.dialects.postgresql.asyncpg)\n\n    SQLITE_AIOSQLITE (Enum): [sqlite+aiosqlite](https://docs.sqlalchemy.org/en/14/dialects/sqlite.html#module-sqlalchemy.dialects.sqlite.aiosqlite)\n\n    MYSQL_ASYNCMY (Enum): [mysql+asyncmy](https://docs.sqlalchemy.org/en/14/dialects/mysql.html#module-sqlalchemy.dialects.mysql.asyncmy)\n    MYSQL_AIOMYSQL (Enum): [mysql+aiomysql](https://docs.sqlalchemy.org/en/14/dialects/mysql.html#module-sqlalchemy.dialects.mysql.aiomysql)", "enum": ["postgresql+asyncpg", "sqlite+aiosqlite", "mysql+asyncmy", "mysql+aiomysql"]}, "SyncDriver": {"title": "SyncDriver", "description": "Known dialects with their corresponding sync drivers.\n\nAttributes:\n    POSTGRESQL_PSYCOPG2 (Enum): [postgresql+psycopg2](https://docs.sqlalchemy.org/en/14/dialects/postgresql.html#module-sqlalchemy.dialects.postgresql.psycopg2)\n    POSTGRESQL_PG8000 (Enum): [postgresql+pg8000](https://docs.sqlalchemy.org/en/14/dialects/postgresql.html#module-sqlalchemy.dialects.postgresql.pg8000)\n    POSTGRESQL_PSYCOPG2CFFI (Enum): [postgresql+psycopg2cffi](https://docs.sqlalchemy.org/en/14/dialects/postgresql.html#module-sqlalchemy.dialects.postgresql.psycopg2cffi)\n    POSTGRESQL_PYPOSTGRESQL (Enum): [postgresql+pypostgresql](https://docs.sqlalchemy.org/en/14/dialects/postgresql.html#module-sqlalchemy.dialects.postgresql.pypostgresql)\n    POSTGRESQL_PYGRESQL (Enum): [postgresql+pygresql](https://docs.sqlalchemy.org/en/14/dialects/postgresql.html#module-sqlalchemy.dialects.postgresql.pygresql)\n\n    MYSQL_MYSQLDB (Enum): [mysql+mysqldb](https://docs.sqlalchemy.org/en/14/dialects/mysql.html#module-sqlalchemy.dialects.mysql.mysqldb)\n    MYSQL_PYMYSQL (Enum): [mysql+pymysql](https://docs.sqlalchemy.org/en/14/dialects/mysql.html#module-sqlalchemy.dialects.mysql.pymysql)\n    MYSQL_MYSQLCONNECTOR (Enum): [mysql+mysqlconnector](https://docs.sqlalchemy.org/en/14/dialects/mysql.html#module-sqlalchemy.dialects.mysql.mysqlconnector)\n    MYSQL_CYMYSQL (Enum): [mysql+cymysql](https://docs.sqlalchemy.org/en/14/dialects/mysql.html#module-sqlalchemy.dialects.mysql.cymysql)\n    MYSQL_OURSQL (Enum): [mysql+oursql](https://docs.sqlalchemy.org/en/14/dialects/mysql.html#module-sqlalchemy.dialects.mysql.oursql)\n    MYSQL_PYODBC (Enum): [mysql+pyodbc](https://docs.sqlalchemy.org/en/14/dialects/mysql.html#module-sqlalchemy.dialects.mysql.pyodbc)\n\n    SQLITE_PYSQLITE (Enum): [sqlite+pysqlite](https://docs.sqlalchemy.org/en/14/dialects/sqlite.html#module-sqlalchemy.dialects.sqlite.pysqlite)\n    SQLITE_PYSQLCIPHER (Enum): [sqlite+pysqlcipher](https://docs.sqlalchemy.org/en/14/dialects/sqlite.html#module-sqlalchemy.dialects.sqlite.pysqlcipher)\n\n    ORACLE_CX_ORACLE (Enum): [oracle+cx_oracle](https://docs.sqlalchemy.org/en/14/dialects/oracle.html#module-sqlalchemy.dialects.oracle.cx_oracle)\n\n    MSSQL_PYODBC (Enum): [mssql+pyodbc](https://docs.sqlalchemy.org/en/14/dialects/mssql.html#module-sqlalchemy.dialects.mssql.pyodbc)\n    MSSQL_MXODBC (Enum): [mssql+mxodbc](https://docs.sqlalchemy.org/en/14/dialects/mssql.html#module-sqlalchemy.dialects.mssql.mxodbc)\n    MSSQL_PYMSSQL (Enum): [mssql+pymssql](https://docs.sqlalchemy.org/en/14/dialects/mssql.html#module-sqlalchemy.dialects.mssql.pymssql)", "enum": ["postgresql+psycopg2", "postgresql+pg8000", "postgresql+psycopg2cffi", "postgresql+pypostgresql", "postgresql+pygresql", "mysql+mysqldb", "mysql+pymysql", "mysql+mysqlconnector", "mysql+cymysql", "mysql+oursql", "mysql+pyodbc", "sqlite+pysqlite", "sqlite+pysqlcipher", "oracle+cx_oracle", "mssql+pyodbc", "mssql+mxodbc", "mssql+pymssql"]}, "ConnectionComponents": {"title": "ConnectionComponents", "description": "Parameters to use to create a SQLAlchemy engine URL.\n\nAttributes:\n    driver: The driver name to use.\n    database: The name of the database to use.\n    username: The user name used to authenticate.\n    password: The password used to authenticate.\n    host: The host address of the database.\n    port: The port to connect to the database.\n    query: A dictionary of string keys to string values to be passed to the dialect\n        and/or the DBAPI upon connect.", "type": "object", "properties": {"driver": {"title": "Driver", "description": "The driver name to use.", "anyOf": [{"$ref": "#/definitions/AsyncDriver"}, {"$ref": "#/definitions/SyncDriver"}, {"type": "string"}]}, "database": {"title": "Database", "description": "The name of the database to use.", "type": "string"}, "username": {"title": "Username", "description": "The user name used to authenticate.", "type": "string"}, "password": {"title": "Password", "description": "The password used to authenticate.", "type": "string", "writeOnly": true, "format": "password"}, "host": {"title": "Host", "description": "The host address of the database.", "type": "string"}, "port": {"title": "Port", "description": "The port to connect to the database.", "type": "string"}, "query": {"title": "Query", "description": "A dictionary of string keys to string values to be passed to the dialect and/or the DBAPI upon connect. To specify non-string parameters to a Python DBAPI directly, use connect_args.", "type": "object", "additionalProperties": {"type": "string"}}}, "required": ["driver", "database"]}}}','dd250648-024f-460a-9baa-27e680e887c6','sha256:a8cba7cafe80dd13d0dc167f351c2dda8d17698b02c7a2f9e7e0fceb1da00994','[]','non-versioned');
INSERT INTO "block_schema" VALUES('6ccf15cb-5dbb-40a8-92cf-e6202215e1bb','2026-11-26 20:19:12.049734','2026-11-26 20:19:12.049758','{"title": "SnowflakeCredentials", "description": "Block used to manage authentication with Snowflake.", "type": "object", "properties": {"account": {"title": "Account", "description": "The snowflake account name.", "example": "nh12345.us-east-2.aws", "type": "string"}, "user": {"title": "User", "description": "The user name used to authenticate.", "type": "string"}, "password": {"title": "Password", "description": "The password used to authenticate.", "type": "string", "writeOnly": true, "format": "password"}, "private_key": {"title": "Private Key", "description": "The PEM used to authenticate.", "type": "string", "writeOnly": true, "format": "password"}, "private_key_path": {"title": "Private Key Path", "description": "The path to the private key.", "type": "string", "format": "path"}, "private_key_passphrase": {"title": "Private Key Passphrase", "description": "The password to use for the private key.", "type": "string", "writeOnly": true, "format": "password"}, "authenticator": {"title": "Authenticator", "description": "The type of authenticator to use for initializing connection.", "default": "snowflake", "enum": ["snowflake", "snowflake_jwt", "externalbrowser", "okta_endpoint", "oauth", "username_password_mfa"], "type": "string"}, "token": {"title": "Token", "description": "The OAuth or JWT Token to provide when authenticator is set to `oauth`.", "type": "string", "writeOnly": true, "format": "password"}, "endpoint": {"title": "Endpoint", "description": "The Okta endpoint to use when authenticator is set to `okta_endpoint`.", "type": "string"}, "role": {"title": "Role", "description": "The name of the default role to use.", "type": "string"}, "autocommit": {"title": "Autocommit", "description": "Whether to automatically commit.", "type": "boolean"}}, "required": ["account", "user"], "block_type_slug": "snowflake-credentials", "secret_fields": ["password", "private_key", "private_key_passphrase", "token"], "definitions": {"AsyncDriver": {"title": "AsyncDriver", "description": "Known dialects with their corresponding async drivers.\n\nAttributes:\n    POSTGRESQL_ASYNCPG (Enum): [postgresql+asyncpg](https://docs.sqlalchemy.org/en/14/dialects/postgresql.html#module-sqlalchemy.dialects.postgresql.asyncpg)\n\n    SQLITE_AIOSQLITE (Enum): [sqlite+aiosqlite](https://docs.sqlalchemy.org/en/14/dialects/sqlite.html#module-sqlalchemy.dialects.sqlite.aiosqlite)\n\n    MYSQL_ASYNCMY (Enum): [mysql+asyncmy](https://docs.sqlalchemy.org/en/14/dialects/mysql.html#module-sqlalchemy.dialects.mysql.asyncmy)\n    MYSQL_AIOMYSQL (Enum): [mysql+aiomysql](https://docs.sqlalchemy.org/en/14/dialects/mysql.html#module-sqlalchemy.dialects.mysql.aiomysql)", "enum": ["postgresql+asyncpg", "sqlite+aiosqlite", "mysql+asyncmy", "mysql+aiomysql"]}, "SyncDriver": {"title": "SyncDriver", "description": "Known dialects with their corresponding sync drivers.\n\nAttributes:\n    POSTGRESQL_PSYCOPG2 (Enum): [postgresql+psycopg2](https://docs.sqlalchemy.org/en/14/dialects/postgresql.html#module-sqlalchemy.dialects.postgresql.psycopg2)\n    POSTGRESQL_PG8000 (Enum): [postgresql+pg8000](https://docs.sqlalchemy.org/en/14/dialects/postgresql.html#module-sqlalchemy.dialects.postgresql.pg8000)\n    POSTGRESQL_PSYCOPG2CFFI (Enum): [postgresql+psycopg2cffi](https://docs.sqlalchemy.org/en/14/dialects/postgresql.html#module-sqlalchemy.dialects.postgresql.psycopg2cffi)\n    POSTGRESQL_PYPOSTGRESQL (Enum): [postgresql+pypostgresql](https://docs.sqlalchemy.org/en/14/dialects/postgresql.html#module-sqlalchemy.dialects.postgresql.pypostgresql)\n    POSTGRESQL_PYGRESQL (Enum): [postgresql+pygresql](https://docs.sqlalchemy.org/en/14/dialects/postgresql.html#module-sqlalchemy.dialects.postgresql.pygresql)\n\n    MYSQL_MYSQLDB (Enum): [mysql+mysqldb](https://docs.sqlalchemy.org/en/14/dialects/mysql.html#module-sqlalchemy.dialects.mysql.mysqldb)\n    MYSQL_PYMYSQL (Enum): [mysql+pymysql](https://docs.sqlalchemy.org/en/14/dialects/mysql.html#module-sqlalchemy.dialects.mysql.pymysql)\n    MYSQL_MYSQLCONNECTOR (Enum): [mysql+mysqlconnector](https://docs.sqlalchemy.org/en/14/dialects/mysql.html#module-sqlalchemy.dialects.mysql.mysqlconnector)\n    MYSQL_CYMYSQL (Enum): [mysql+cymysql](https://docs.sqlalchemy.org/en/14/dialects/mysql.html#module-sqlalchemy.dialects.mysql.cymysql)\n    MYSQL_OURSQL (Enum): [mysql+oursql](https://docs.sqlalchemy.org/en/14/dialects/mysql.html#module-sqlalchemy.dialects.mysql.oursql)\n    MYSQL_PYODBC (Enum): [mysql+pyodbc](https://docs.sqlalchemy.org/en/14/dialects/mysql.html#module-sqlalchemy.dialects.mysql.pyodbc)\n\n    SQLITE_PYSQLITE (Enum): [sqlite+pysqlite](https://docs.sqlalchemy.org/en/14/dialects/sqlite.html#module-sqlalchemy.dialects.sqlite.pysqlite)\n    SQLITE_PYSQLCIPHER (Enum): [sqlite+pysqlcipher](https://docs.sqlalchemy.org/en/14/dialects/sqlite.html#module-sqlalchemy.dialects.sqlite.pysqlcipher)\n\n    ORACLE_CX_ORACLE (Enum): [oracle+cx_oracle](https://docs.sqlalchemy.org/en/14/dialects/oracle.html#module-sqlalchemy.dialects.oracle.cx_oracle)\n\n    MSSQL_PYODBC (Enum): [mssql+pyodbc](https://docs.sqlalchemy.org/en/14/dialects/mssql.html#module-sqlalchemy.dialects.mssql.pyodbc)\n    MSSQL_MXODBC (Enum): [mssql+mxodbc](https://docs.sqlalchemy.org/en/14/dialects/mssql.html#module-sqlalchemy.dialects.mssql.mxodbc)\n    MSSQL_PYMSSQL (Enum): [mssql+pymssql](https://docs.sqlalchemy.org/en/14/dialects/mssql.html#module-sqlalchemy.dialects.mssql.pymssql)", "enum": ["postgresql+psycopg2", "postgresql+pg8000", "postgresql+psycopg2cffi", "postgresql+pypostgresql", "postgresql+pygresql", "mysql+mysqldb", "mysql+pymysql", "mysql+mysqlconnector", "mysql+cymysql", "mysql+oursql", "mysql+pyodbc", "sqlite+pysqlite", "sqlite+pysqlcipher", "oracle+cx_oracle", "mssql+pyodbc", "mssql+mxodbc", "mssql+pymssql"]}, "ConnectionComponents": {"title": "ConnectionComponents", "description": "Parameters to use to create a SQLAlchemy engine URL.\n\nAttributes:\n    driver: The driver name to use.\n    database: The name of the database to use.\n    username: The user name used to authenticate.\n    password: The password used to authenticate.\n    host: The host address of the database.\n    port: The port to connect to the database.\n    query: A dictionary of string keys to string values to be passed to the dialect\n        and/or the DBAPI upon connect.", "type": "object", "properties": {"driver": {"title": "Driver", "description": "The driver name to use.", "anyOf": [{"$ref": "#/definitions/AsyncDriver"}, {"$ref": "#/definitions/SyncDriver"}, {"type": "string"}]}, "database": {"title": "Database", "description": "The name of the database to use.", "type": "string"}, "username": {"title": "Username", "description": "The user name used to authenticate.", "type": "string"}, "password": {"title": "Password", "description": "The password used to authenticate.", "type": "string", "writeOnly": true, "format": "password"}, "host": {"title": "Host", "description": "The host address of the database.", "type": "string"}, "port": {"title": "Port", "description": "The port to connect to the database.", "type": "string"}, "query": {"title": "Query", "description": "A dictionary of string keys to string values to be passed to the dialect and/or the DBAPI upon connect. To specify non-string parameters to a Python DBAPI directly, use connect_args.", "type": "object", "additionalProperties": {"type": "string"}}}, "required": ["driver", "database"]}}}','4781e74e-dddb-4fa8-88ad-39c6aa4aaa93','sha256:35bea1e0ca2277b003ca6d1c220e59ce9a58330934c051fe26a549c2fa380b1f','[]','non-versioned');
INSERT INTO "block_schema" VALUES('79ae886a-1221-4937-be57-bea932501a27','2026-11-26 20:19:12.562832','2026-11-26 20:19:12.562859','{"title": "TargetConfigs", "description": "Target configs contain credentials and\nsettings, specific to the warehouse you''re connecting to.\nTo find valid keys, head to the [Available adapters](\nhttps://docs.getdbt.com/docs/available-adapters) page and\nclick the desired adapter''s \"Profile Setup\" hyperlink.", "type": "object", "properties": {"extras": {"title": "Extras", "description": "Extra target configs'' keywords, not yet exposed in prefect-dbt, but available in dbt.", "type": "object"}, "allow_field_overrides": {"title": "Allow Field Overrides", "description": "If enabled, fields from dbt target configs will override fields provided in extras and credentials.", "default": false, "type": "boolean"}, "type": {"title": "Type", "description": "The name of the database warehouse.", "type": "string"}, "schema": {"title": "Schema", "description": "The schema that dbt will build objects into; in BigQuery, a schema is actually a dataset.", "type": "string"}, "threads": {"title": "Threads", "description": "The number of threads representing the max number of paths through the graph dbt may work on at once.", "default": 4, "type": "integer"}}, "required": ["type", "schema"], "block_type_slug": "dbt-cli-target-configs", "secret_fields": [], "definitions": {"AsyncDriver": {"title": "AsyncDriver", "description": "Known dialects with their corresponding async drivers.\n\nAttributes:\n    POSTGRESQL_ASYNCPG (Enum): [postgresql+asyncpg](https://docs.sqlalchemy.org/en/14/dialects/postgresql.html#module-sqlalchemy.dialects.postgresql.asyncpg)\n\n    SQLITE_AIOSQLITE (Enum): [sqlite+aiosqlite](https://docs.sqlalchemy.org/en/14/dialects/sqlite.html#module-sqlalchemy.dialects.sqlite.aiosqlite)\n\n    MYSQL_ASYNCMY (Enum): [mysql+asyncmy](https://docs.sqlalchemy.org/en/14/dialects/mysql.html#module-sqlalchemy.dialects.mysql.asyncmy)\n    MYSQL_AIOMYSQL (Enum): [mysql+aiomysql](https://docs.sqlalchemy.org/en/14/dialects/mysql.html#module-sqlalchemy.dialects.mysql.aiomysql)", "enum": ["postgresql+asyncpg", "sqlite+aiosqlite", "mysql+asyncmy", "mysql+aiomysql"]}, "SyncDriver": {"title": "SyncDriver", "description": "Known dialects with their corresponding sync drivers.\n\nAttributes:\n    POSTGRESQL_PSYCOPG2 (Enum): [postgresql+psycopg2](https://docs.sqlalchemy.org/en/14/dialects/postgresql.html#module-sqlalchemy.dialects.postgresql.psycopg2)\n    POSTGRESQL_PG8000 (Enum): [postgresql+pg8000](https://docs.sqlalchemy.org/en/14/dialects/postgresql.html#module-sqlalchemy.dialects.postgresql.pg8000)\n    POSTGRESQL_PSYCOPG2CFFI (Enum): [postgresql+psycopg2cffi](https://docs.sqlalchemy.org/en/14/dialects/postgresql.html#module-sqlalchemy.dialects.postgresql.psycopg2cffi)\n    POSTGRESQL_PYPOSTGRESQL (Enum): [postgresql+pypostgresql](https://docs.sqlalchemy.org/en/14/dialects/postgresql.html#module-sqlalchemy.dialects.postgresql.pypostgresql)\n    POSTGRESQL_PYGRESQL (Enum): [postgresql+pygresql](https://docs.sqlalchemy.org/en/14/dialects/postgresql.html#module-sqlalchemy.dialects.postgresql.pygresql)\n\n    MYSQL_MYSQLDB (Enum): [mysql+mysqldb](https://docs.sqlalchemy.org/en/14/dialects/mysql.html#module-sqlalchemy.dialects.mysql.mysqldb)\n    MYSQL_PYMYSQL (Enum): [mysql+pymysql](https://docs.sqlalchemy.org/en/14/dialects/mysql.html#module-sqlalchemy.dialects.mysql.pymysql)\n    MYSQL_MYSQLCONNECTOR (Enum): [mysql+mysqlconnector](https://docs.sqlalchemy.org/en/14/dialects/mysql.html#module-sqlalchemy.dialects.mysql.mysqlconnector)\n    MYSQL_CYMYSQL (Enum): [mysql+cymysql](https://docs.sqlalchemy.org/en/14/dialects/mysql.html#module-sqlalchemy.dialects.mysql.cymysql)\n    MYSQL_OURSQL (Enum): [mysql+oursql](https://docs.sqlalchemy.org/en/14/dialects/mysql.html#module-sqlalchemy.dialects.mysql.oursql)\n    MYSQL_PYODBC (Enum): [mysql+pyodbc](https://docs.sqlalchemy.org/en/14/dialects/mysql.html#module-sqlalchemy.dialects.mysql.pyodbc)\n\n    SQLITE_PYSQLITE (Enum): [sqlite+pysqlite](https://docs.sqlalchemy.org/en/14/dialects/sqlite.html#module-sqlalchemy.dialects.sqlite.pysqlite)\n    SQLITE_PYSQLCIPHER (Enum): [sqlite+pysqlcipher](https://docs.sqlalchemy.org/en/14/dialects/sqlite.html#module-sqlalchemy.dialects.sqlite.pysqlcipher)\n\n    ORACLE_CX_ORACLE (Enum): [oracle+cx_oracle](https://docs.sqlalchemy.org/en/14/dialects/oracle.html#module-sqlalchemy.dialects.oracle.cx_oracle)\n\n    MSSQL_PYODBC (Enum): [mssql+pyodbc](https://docs.sqlalchemy.org/en/14/dialects/mssql.html#module-sqlalchemy.dialects.mssql.pyodbc)\n    MSSQL_MXODBC (Enum): [mssql+mxodbc](https://docs.sqlalchemy.org/en/14/dialects/mssql.html#module-sqlalchemy.dialects.mssql.mxodbc)\n    MSSQL_PYMSSQL (Enum): [mssql+pymssql](https://docs.sqlalchemy.org/en/14/dialects/mssql.html#module-sqlalchemy.dialects.mssql.pymssql)", "enum": ["postgresql+psycopg2", "postgresql+pg8000", "postgresql+psycopg2cffi", "postgresql+pypostgresql", "postgresql+pygresql", "mysql+mysqldb", "mysql+pymysql", "mysql+mysqlconnector", "mysql+cymysql", "mysql+oursql", "mysql+pyodbc", "sqlite+pysqlite", "sqlite+pysqlcipher", "oracle+cx_oracle", "mssql+pyodbc", "mssql+mxodbc", "mssql+pymssql"]}, "ConnectionComponents": {"title": "ConnectionComponents", "description": "Parameters to use to create a SQLAlchemy engine URL.\n\nAttributes:\n    driver: The driver name to use.\n    database: The name of the database to use.\n    username: The user name used to authenticate.\n    password: The password used to authenticate.\n    host: The host address of the database.\n    port: The port to connect to the database.\n    query: A dictionary of string keys to string values to be passed to the dialect\n        and/or the DBAPI upon connect.", "type": "object", "properties": {"driver": {"title": "Driver", "description": "The driver name to use.", "anyOf": [{"$ref": "#/definitions/AsyncDriver"}, {"$ref": "#/definitions/SyncDriver"}, {"type": "string"}]}, "database": {"title": "Database", "description": "The name of the database to use.", "type": "string"}, "username": {"title": "Username", "description": "The user name used to authenticate.", "type": "string"}, "password": {"title": "Password", "description": "The password used to authenticate.", "type": "string", "writeOnly": true, "format": "password"}, "host": {"title": "Host", "description": "The host address of the database.", "type": "string"}, "port": {"title": "Port", "description": "The port to connect to the database.", "type": "string"}, "query": {"title": "Query", "description": "A dictionary of string keys to string values to be passed to the dialect and/or the DBAPI upon connect. To specify non-string parameters to a Python DBAPI directly, use connect_args.", "type": "object", "additionalProperties": {"type": "string"}}}, "required": ["driver", "database"]}}}','bf08ae03-f194-441d-9315-55ed0128ecec','sha256:d0c8411280a2529a973b70fb86142959008aad2fe3844c63ab03190e232f776a','[]','non-versioned');
INSERT INTO "block_schema" VALUES('4e162e24-43a5-4d2d-8e4e-83037b7c90e7','2026-11-26 20:19:12.916182','2026-11-26 20:19:12.916209','{"title": "SnowflakeTargetConfigs", "description": "Target configs contain credentials and\nsettings, specific to Snowflake.\nTo find valid keys, head to the [Snowflake Profile](\nhttps://docs.getdbt.com/reference/warehouse-profiles/snowflake-profile)\npage.", "type": "object", "properties": {"extras": {"title": "Extras", "description": "Extra target configs'' keywords, not yet exposed in prefect-dbt, but available in dbt.", "type": "object"}, "allow_field_overrides": {"title": "Allow Field Overrides", "description": "If enabled, fields from dbt target configs will override fields provided in extras and credentials.", "default": false, "type": "boolean"}, "type": {"title": "Type", "description": "The type of the target configs.", "default": "snowflake", "enum": ["snowflake"], "type": "string"}, "schema": {"title": "Schema", "description": "The schema to use for the target configs.", "type": "string"}, "threads": {"title": "Threads", "description": "The number of threads representing the max number of paths through the graph dbt may work on at once.", "default": 4, "type": "integer"}, "connector": {"title": "Connector", "description": "The connector to use.", "allOf": [{"$ref": "#/definitions/SnowflakeConnector"}]}}, "required": ["connector"], "block_type_slug": "dbt-cli-snowflake-target-configs", "secret_fields": ["connector.credentials.password", "connector.credentials.private_key", "connector.credentials.private_key_passphrase", "connector.credentials.token"]}','7c787b67-90b3-4f0e-9915-b3291db9fd6f','sha256:1e5be296bb63d7e2b04f0e9b99543db12521af269399d10e2bc290da4244a575','[]','0.4.1');
INSERT INTO "block_schema" VALUES('2440d4bb-80ab-438a-b6c4-f2132b33ee00','2026-11-26 20:19:13.017328','2026-11-26 20:19:13.017353','{"title": "SnowflakeConnector", "description": "Perform data operations against a Snowflake database.", "type": "object", "properties": {"credentials": {"title": "Credentials", "description": "The credentials to authenticate with Snowflake.", "allOf": [{"$ref": "#/definitions/SnowflakeCredentials"}]}, "database": {"title": "Database", "description": "The name of the default database to use.", "type": "string"}, "warehouse": {"title": "Warehouse", "description": "The name of the default warehouse to use.", "type": "string"}, "schema": {"title": "Schema", "description": "The name of the default schema to use.", "type": "string"}, "fetch_size": {"title": "Fetch Size", "description": "The default number of rows to fetch at a time.", "default": 1, "type": "integer"}, "poll_frequency_s": {"title": "Poll Frequency [seconds]", "description": "The number of seconds between checking query status for long running queries.", "default": 1, "type": "integer"}}, "required": ["credentials", "database", "warehouse", "schema"], "block_type_slug": "snowflake-connector", "secret_fields": ["credentials.password", "credentials.private_key", "credentials.private_key_passphrase", "credentials.token"]}','dd250648-024f-460a-9baa-27e680e887c6','sha256:dd0d36d69bbe0d44870fd754f3c00754e37e3f52209590083eaee4c585ce0bd0','[]','non-versioned');
INSERT INTO "block_schema" VALUES('694c0ff1-e163-4367-90e0-1e3086b65547','2026-11-26 20:19:13.158469','2026-11-26 20:19:13.158494','{"title": "SnowflakeCredentials", "description": "Block used to manage authentication with Snowflake.", "type": "object", "properties": {"account": {"title": "Account", "description": "The snowflake account name.", "example": "nh12345.us-east-2.aws", "type": "string"}, "user": {"title": "User", "description": "The user name used to authenticate.", "type": "string"}, "password": {"title": "Password", "description": "The password used to authenticate.", "type": "string", "writeOnly": true, "format": "password"}, "private_key": {"title": "Private Key", "description": "The PEM used to authenticate.", "type": "string", "writeOnly": true, "format": "password"}, "private_key_path": {"title": "Private Key Path", "description": "The path to the private key.", "type": "string", "format": "path"}, "private_key_passphrase": {"title": "Private Key Passphrase", "description": "The password to use for the private key.", "type": "string", "writeOnly": true, "format": "password"}, "authenticator": {"title": "Authenticator", "description": "The type of authenticator to use for initializing connection.", "default": "snowflake", "enum": ["snowflake", "snowflake_jwt", "externalbrowser", "okta_endpoint", "oauth", "username_password_mfa"], "type": "string"}, "token": {"title": "Token", "description": "The OAuth or JWT Token to provide when authenticator is set to `oauth`.", "type": "string", "writeOnly": true, "format": "password"}, "endpoint": {"title": "Endpoint", "description": "The Okta endpoint to use when authenticator is set to `okta_endpoint`.", "type": "string"}, "role": {"title": "Role", "description": "The name of the default role to use.", "type": "string"}, "autocommit": {"title": "Autocommit", "description": "Whether to automatically commit.", "type": "boolean"}}, "required": ["account", "user"], "block_type_slug": "snowflake-credentials", "secret_fields": ["password", "private_key", "private_key_passphrase", "token"]}','4781e74e-dddb-4fa8-88ad-39c6aa4aaa93','sha256:b24edfb413527c951cb2a8b4b4c16aec096523f871d941889e29ac2e6e92e036','[]','non-versioned');
INSERT INTO "block_schema" VALUES('e8a351b3-e0b7-4bec-a372-b32634301692','2026-11-26 20:19:13.377462','2026-11-26 20:19:13.377485','{"title": "TargetConfigs", "description": "Target configs contain credentials and\nsettings, specific to the warehouse you''re connecting to.\nTo find valid keys, head to the [Available adapters](\nhttps://docs.getdbt.com/docs/available-adapters) page and\nclick the desired adapter''s \"Profile Setup\" hyperlink.", "type": "object", "properties": {"extras": {"title": "Extras", "description": "Extra target configs'' keywords, not yet exposed in prefect-dbt, but available in dbt.", "type": "object"}, "allow_field_overrides": {"title": "Allow Field Overrides", "description": "If enabled, fields from dbt target configs will override fields provided in extras and credentials.", "default": false, "type": "boolean"}, "type": {"title": "Type", "description": "The name of the database warehouse.", "type": "string"}, "schema": {"title": "Schema", "description": "The schema that dbt will build objects into; in BigQuery, a schema is actually a dataset.", "type": "string"}, "threads": {"title": "Threads", "description": "The number of threads representing the max number of paths through the graph dbt may work on at once.", "default": 4, "type": "integer"}}, "required": ["type", "schema"], "block_type_slug": "dbt-cli-target-configs", "secret_fields": []}','bf08ae03-f194-441d-9315-55ed0128ecec','sha256:85f7476977e725617af89930889b843147320b2df37df911e24806dd6dacc870','[]','0.4.1');
INSERT INTO "block_schema" VALUES('e4c782b7-fd7c-414a-8591-04fed7443c85','2026-11-26 20:19:13.517956','2026-11-26 20:19:13.517983','{"title": "DbtCloudCredentials", "description": "Credentials block for credential use across dbt Cloud tasks and flows.", "type": "object", "properties": {"api_key": {"title": "API Key", "description": "A dbt Cloud API key to use for authentication.", "type": "string", "writeOnly": true, "format": "password"}, "account_id": {"title": "Account ID", "description": "The ID of your dbt Cloud account.", "type": "integer"}, "domain": {"title": "Domain", "description": "The base domain of your dbt Cloud instance.", "default": "cloud.getdbt.com", "type": "string"}}, "required": ["api_key", "account_id"], "block_type_slug": "dbt-cloud-credentials", "secret_fields": ["api_key"]}','b533e83a-305e-4f2a-8120-f4568f7326d6','sha256:0e1b2e94e09041e7d732822354503e87b99ddb31422d9d2c83c671be249aa231','[]','0.4.1');
INSERT INTO "block_schema" VALUES('34129669-4424-4cf0-b7cb-027fdea01814','2026-11-26 20:19:13.732328','2026-11-26 20:19:13.732354','{"title": "DbtCoreOperation", "description": "A block representing a dbt operation, containing multiple dbt and shell commands.\n\nFor long-lasting operations, use the trigger method and utilize the block as a\ncontext manager for automatic closure of processes when context is exited.\nIf not, manually call the close method to close processes.\n\nFor short-lasting operations, use the run method. Context is automatically managed\nwith this method.", "type": "object", "properties": {"commands": {"title": "Commands", "description": "A list of commands to execute sequentially.", "type": "array", "items": {"type": "string"}}, "stream_output": {"title": "Stream Output", "description": "Whether to stream output.", "default": true, "type": "boolean"}, "env": {"title": "Environment Variables", "description": "Environment variables to use for the subprocess.", "type": "object", "additionalProperties": {"type": "string"}}, "working_dir": {"title": "Working Directory", "description": "The absolute path to the working directory the command will be executed within.", "format": "directory-path", "type": "string"}, "shell": {"title": "Shell", "description": "The shell to run the command with; if unset, defaults to `powershell` on Windows and `bash` on other platforms.", "type": "string"}, "extension": {"title": "Extension", "description": "The extension to use for the temporary file; if unset, defaults to `.ps1` on Windows and `.sh` on other platforms.", "type": "string"}, "profiles_dir": {"title": "Profiles Dir", "description": "The directory to search for the profiles.yml file. Setting this appends the `--profiles-dir` option to the dbt commands provided. If this is not set, will try using the DBT_PROFILES_DIR environment variable, but if that''s also not set, will use the default directory `$HOME/.dbt/`.", "type": "string", "format": "path"}, "project_dir": {"title": "Project Dir", "description": "The directory to search for the dbt_project.yml file. Default is the current working directory and its parents.", "type": "string", "format": "path"}, "overwrite_profiles": {"title": "Overwrite Profiles", "description": "Whether the existing profiles.yml file under profiles_dir should be overwritten with a new profile.", "default": false, "type": "boolean"}, "dbt_cli_profile": {"title": "Dbt Cli Profile", "description": "Profiles class containing the profile written to profiles.yml. Note! This is optional and will raise an error if profiles.yml already exists under profile_dir and overwrite_profiles is set to False.", "allOf": [{"$ref": "#/definitions/DbtCliProfile"}]}}, "required": ["commands"], "block_type_slug": "dbt-core-operation", "secret_fields": ["dbt_cli_profile.target_configs.connector.credentials.password", "dbt_cli_profile.target_configs.connector.credentials.private_key", "dbt_cli_profile.target_configs.connector.credentials.private_key_passphrase", "dbt_cli_profile.target_configs.connector.credentials.token", "dbt_cli_profile.target_configs.credentials.service_account_info.*", "dbt_cli_profile.target_configs.credentials.connection_info.password", "dbt_cli_profile.target_configs.credentials.password"], "definitions": {"AsyncDriver": {"title": "AsyncDriver", "description": "Known dialects with their corresponding async drivers.\n\nAttributes:\n    POSTGRESQL_ASYNCPG (Enum): [postgresql+asyncpg](https://docs.sqlalchemy.org/en/14/dialects/postgresql.html#module-sqlalchemy.dialects.postgresql.asyncpg)\n\n    SQLITE_AIOSQLITE (Enum): [sqlite+aiosqlite](https://docs.sqlalchemy.org/en/14/dialects/sqlite.html#module-sqlalchemy.dialects.sqlite.aiosqlite)\n\n    MYSQL_ASYNCMY (Enum): [mysql+asyncmy](https://docs.sqlalchemy.org/en/14/dialects/mysql.html#module-sqlalchemy.dialects.mysql.asyncmy)\n    MYSQL_AIOMYSQL (Enum): [mysql+aiomysql](https://docs.sqlalchemy.org/en/14/dialects/mysql.html#module-sqlalchemy.dialects.mysql.aiomysql)", "enum": ["postgresql+asyncpg", "sqlite+aiosqlite", "mysql+asyncmy", "mysql+aiomysql"]}, "SyncDriver": {"title": "SyncDriver", "description": "Known dialects with their corresponding sync drivers.\n\nAttributes:\n    POSTGRESQL_PSYCOPG2 (Enum): [postgresql+psycopg2](https://docs.sqlalchemy.org/en/14/dialects/postgresql.html#module-sqlalchemy.dialects.postgresql.psycopg2)\n    POSTGRESQL_PG8000 (Enum): [postgresql+pg8000](https://docs.sqlalchemy.org/en/14/dialects/postgresql.html#module-sqlalchemy.dialects.postgresql.pg8000)\n    POSTGRESQL_PSYCOPG2CFFI (Enum): [postgresql+psycopg2cffi](https://docs.sqlalchemy.org/en/14/dialects/postgresql.html#module-sqlalchemy.dialects.postgresql.psycopg2cffi)\n    POSTGRESQL_PYPOSTGRESQL (Enum): [postgresql+pypostgresql](https://docs.sqlalchemy.org/en/14/dialects/postgresql.html#module-sqlalchemy.dialects.postgresql.pypostgresql)\n    POSTGRESQL_PYGRESQL (Enum): [postgresql+pygresql](https://docs.sqlalchemy.org/en/14/dialects/postgresql.html#module-sqlalchemy.dialects.postgresql.pygresql)\n\n    MYSQL_MYSQLDB (Enum): [mysql+mysqldb](https://docs.sqlalchemy.org/en/14/dialects/mysql.html#module-sqlalchemy.dialects.mysql.mysqldb)\n    MYSQL_PYMYSQL (Enum): [mysql+pymysql](https://docs.sqlalchemy.org/en/14/dialects/mysql.html#module-sqlalchemy.dialects.mysql.pymysql)\n    MYSQL_MYSQLCONNECTOR (Enum): [mysql+mysqlconnector](https://docs.sqlalchemy.org/en/14/dialects/mysql.html#module-sqlalchemy.dialects.mysql.mysqlconnector)\n    MYSQL_CYMYSQL (Enum): [mysql+cymysql](https://docs.sqlalchemy.org/en/14/dialects/mysql.html#module-sqlalchemy.dialects.mysql.cymysql)\n    MYSQL_OURSQL (Enum): [mysql+oursql](https://docs.sqlalchemy.org/en/14/dialects/mysql.html#module-sqlalchemy.dialects.mysql.oursql)\n    MYSQL_PYODBC (Enum): [mysql+pyodbc](https://docs.sqlalchemy.org/en/14/dialects/mysql.html#module-sqlalchemy.dialects.mysql.pyodbc)\n\n    SQLITE_PYSQLITE (Enum): [sqlite+pysqlite](https://docs.sqlalchemy.org/en/14/dialects/sqlite.html#module-sqlalchemy.dialects.sqlite.pysqlite)\n    SQLITE_PYSQLCIPHER (Enum): [sqlite+pysqlcipher](https://docs.sqlalchemy.org/en/14/dialects/sqlite.html#module-sqlalchemy.dialects.sqlite.pysqlcipher)\n\n    ORACLE_CX_ORACLE (Enum): [oracle+cx_oracle](https://docs.sqlalchemy.org/en/14/dialects/oracle.html#module-sqlalchemy.dialects.oracle.cx_oracle)\n\n    MSSQL_PYODBC (Enum): [mssql+pyodbc](https://docs.sqlalchemy.org/en/14/dialects/mssql.html#module-sqlalchemy.dialects.mssql.pyodbc)\n    MSSQL_MXODBC (Enum): [mssql+mxodbc](https://docs.sqlalchemy.org/en/14/dialects/mssql.html#module-sqlalchemy.dialects.mssql.mxodbc)\n    MSSQL_PYMSSQL (Enum): [mssql+pymssql](https://docs.sqlalchemy.org/en/14/dialects/mssql.html#module-sqlalchemy.dialects.mssql.pymssql)", "enum": ["postgresql+psycopg2", "postgresql+pg8000", "postgresql+psycopg2cffi", "postgresql+pypostgresql", "postgresql+pygresql", "mysql+mysqldb", "mysql+pymysql", "mysql+mysqlconnector", "mysql+cymysql", "mysql+oursql", "mysql+pyodbc", "sqlite+pysqlite", "sqlite+pysqlcipher", "oracle+cx_oracle", "mssql+pyodbc", "mssql+mxodbc", "mssql+pymssql"]}, "ConnectionComponents": {"title": "ConnectionComponents", "description": "Parameters to use to create a SQLAlchemy engine URL.\n\nAttributes:\n    driver: The driver name to use.\n    database: The name of the database to use.\n    username: The user name used to authenticate.\n    password: The password used to authenticate.\n    host: The host address of the database.\n    port: The port to connect to the database.\n    query: A dictionary of string keys to string values to be passed to the dialect\n        and/or the DBAPI upon connect.", "type": "object", "properties": {"driver": {"title": "Driver", "description": "The driver name to use.", "anyOf": [{"$ref": "#/definitions/AsyncDriver"}, {"$ref": "#/definitions/SyncDriver"}, {"type": "string"}]}, "database": {"title": "Database", "description": "The name of the database to use.", "type": "string"}, "username": {"title": "Username", "description": "The user name used to authenticate.", "type": "string"}, "password": {"title": "Password", "description": "The password used to authenticate.", "type": "string", "writeOnly": true, "format": "password"}, "host": {"title": "Host", "description": "The host address of the database.", "type": "string"}, "port": {"title": "Port", "description": "The port to connect to the database.", "type": "string"}, "query": {"title": "Query", "description": "A dictionary of string keys to string values to be passed to the dialect and/or the DBAPI upon connect. To specify non-string parameters to a Python DBAPI directly, use connect_args.", "type": "object", "additionalProperties": {"type": "string"}}}, "required": ["driver", "database"]}}}','c6819aec-7c19-4adf-abd3-e0fc1441c37d','sha256:0f685bc693353f66d1fc83687c8af67511feba052b5343506033141c9a2441c7','[]','0.4.1');
INSERT INTO "block_schema" VALUES('dcf7d520-2abc-4e82-a26a-f396983b3cce','2026-11-26 20:19:14.075771','2026-11-26 20:19:14.075796','{"title": "DockerHost", "description": "Store settings for interacting with a Docker host.", "type": "object", "properties": {"base_url": {"title": "Base URL", "description": "URL to the Docker host.", "example": "unix:///var/run/docker.sock", "type": "string"}, "version": {"title": "Version", "description": "The version of the API to use", "default": "auto", "type": "string"}, "timeout": {"title": "Timeout", "description": "Default timeout for API calls, in seconds.", "type": "integer"}, "max_pool_size": {"title": "Max Pool Size", "description": "The maximum number of connections to save in the pool.", "type": "integer"}, "client_kwargs": {"title": "Additional Configuration", "description": "Additional keyword arguments to pass to `docker.from_env()` or `DockerClient`.", "type": "object"}}, "block_type_slug": "docker-host", "secret_fields": []}','bda0ac58-93a9-47bd-a77b-bd34f54775bf','sha256:bf0961e9f2d88fd81bca2c7b78c025bd289776ad84ae8ef22d8f3db8b9561478','[]','0.4.5');
INSERT INTO "block_schema" VALUES('744e22a7-aa6b-4902-8f73-bc5389f86f38','2026-11-26 20:19:14.205489','2026-11-26 20:19:14.205513','{"title": "DockerRegistryCredentials", "description": "Store credentials for interacting with a Docker Registry.", "type": "object", "properties": {"username": {"title": "Username", "description": "The username to log into the registry with.", "type": "string"}, "password": {"title": "Password", "description": "The password to log into the registry with.", "type": "string", "writeOnly": true, "format": "password"}, "registry_url": {"title": "Registry Url", "description": "The URL to the registry. Generally, \"http\" or \"https\" can be omitted.", "example": "index.docker.io", "type": "string"}, "reauth": {"title": "Reauth", "description": "Whether or not to reauthenticate on each interaction.", "default": true, "type": "boolean"}}, "required": ["username", "password", "registry_url"], "block_type_slug": "docker-registry-credentials", "secret_fields": ["password"]}','af3356fe-b6c4-48cc-9042-58e64e00f9cd','sha256:d5cbcfdf092e1f904ea26c274fcd0f23d86ecbbd0afae0f254f575ac3e40915d','[]','0.4.5');
INSERT INTO "block_schema" VALUES('781e3f17-3e69-420f-bfc7-e0793c54ed40','2026-11-26 20:19:14.347466','2026-11-26 20:19:14.347492','{"title": "EmailServerCredentials", "description": "Block used to manage generic email server authentication.\nIt is recommended you use a\n[Google App Password](https://support.google.com/accounts/answer/185833)\nif you use Gmail.", "type": "object", "properties": {"username": {"title": "Username", "description": "The username to use for authentication to the server. Unnecessary if SMTP login is not required.", "type": "string"}, "password": {"title": "Password", "description": "The password to use for authentication to the server. Unnecessary if SMTP login is not required.", "type": "string", "writeOnly": true, "format": "password"}, "smtp_server": {"title": "SMTP Server", "description": "Either the hostname of the SMTP server, or one of the keys from the built-in SMTPServer Enum members, like ''gmail''.", "default": "smtp.gmail.com", "anyOf": [{"$ref": "#/definitions/SMTPServer"}, {"type": "string"}]}, "smtp_type": {"title": "SMTP Type", "description": "Either ''SSL'', ''STARTTLS'', or ''INSECURE''.", "default": 465, "anyOf": [{"$ref": "#/definitions/SMTPType"}, {"type": "string"}]}, "smtp_port": {"title": "SMTP Port", "description": "If provided, overrides the smtp_type''s default port number.", "type": "integer"}}, "block_type_slug": "email-server-credentials", "secret_fields": ["password"], "definitions": {"SMTPServer": {"title": "SMTPServer", "description": "Server used to send email.", "enum": ["smtp.aol.com", "smtp.mail.att.net", "smtp.comcast.net", "smtp.mail.me.com", "smtp.gmail.com", "smtp-mail.outlook.com", "smtp.mail.yahoo.com"]}, "SMTPType": {"title": "SMTPType", "description": "Protocols used to secure email transmissions.", "enum": [465, 587, 25]}}}','e514bc03-ac7d-43d2-9494-086f29f982fe','sha256:56d6491f4b2d4aaae5ce604652416f44d0c8fa39ca68c5f747aee7cb518a41d0','[]','0.3.2');
INSERT INTO "block_schema" VALUES('b059da3d-0833-4bb6-b7e4-8e6a9e8410f2','2026-11-26 20:19:14.600987','2026-11-26 20:19:14.601012','{"title": "BigQueryWarehouse", "description": "A block for querying a database with BigQuery.\n\nUpon instantiating, a connection to BigQuery is established\nand maintained for the life of the object until the close method is called.\n\nIt is recommended to use this block as a context manager, which will automatically\nclose the connection and its cursors when the context is exited.\n\nIt is also recommended that this block is loaded and consumed within a single task\nor flow because if the block is passed across separate tasks and flows,\nthe state of the block''s connection and cursor could be lost.", "type": "object", "properties": {"gcp_credentials": {"$ref": "#/definitions/GcpCredentials"}, "fetch_size": {"title": "Fetch Size", "description": "The number of rows to fetch at a time.", "default": 1, "type": "integer"}}, "required": ["gcp_credentials"], "block_type_slug": "bigquery-warehouse", "secret_fields": ["gcp_credentials.service_account_info.*"]}','b0b6ac7d-3bc1-42ad-9810-ef37a2e5e2f9','sha256:e8495199f3b490e3b15ba1bc67a97cf04b23aa8a7cba67161291d7cbc882d025','[]','0.5.8');
INSERT INTO "block_schema" VALUES('e5a23508-31be-477e-b525-812782c6dc7e','2026-11-26 20:19:14.952046','2026-11-26 20:19:14.952072','{"title": "GcpCredentials", "description": "Block used to manage authentication with GCP. Google authentication is\nhandled via the `google.oauth2` module or through the CLI.\nSpecify either one of service `account_file` or `service_account_info`; if both\nare not specified, the client will try to detect the credentials following Google''s\n[Application Default Credentials](https://cloud.google.com/docs/authentication/application-default-credentials).\nSee Google''s [Authentication documentation](https://cloud.google.com/docs/authentication#service-accounts)\nfor details on inference and recommended authentication patterns.", "type": "object", "properties": {"service_account_file": {"title": "Service Account File", "description": "Path to the service account JSON keyfile.", "type": "string", "format": "path"}, "service_account_info": {"title": "Service Account Info", "description": "The contents of the keyfile as a dict.", "type": "object"}, "project": {"title": "Project", "description": "The GCP project to use for the client.", "type": "string"}}, "block_type_slug": "gcp-credentials", "secret_fields": ["service_account_info.*"]}','12a9e4d2-b9f6-44a9-ad57-020c3ac04c11','sha256:f764f9c506a2bed9e5ed7cc9083d06d95f13c01c8c9a9e45bae5d9b4dc522624','[]','0.5.8');
INSERT INTO "block_schema" VALUES('d037272f-8a9b-498e-94b6-22d26757451e','2026-11-26 20:19:14.967390','2026-11-26 20:19:14.967412','{"title": "GcpSecret", "description": "Manages a secret in Google Cloud Platform''s Secret Manager.", "type": "object", "properties": {"gcp_credentials": {"$ref": "#/definitions/GcpCredentials"}, "secret_name": {"title": "Secret Name", "description": "Name of the secret to manage.", "type": "string"}, "secret_version": {"title": "Secret Version", "description": "Version number of the secret to use.", "default": "latest", "type": "string"}}, "required": ["gcp_credentials", "secret_name"], "block_type_slug": "gcpsecret", "secret_fields": ["gcp_credentials.service_account_info.*"]}','87a65b21-3648-4e50-b4d9-b1d74be2c25d','sha256:0311dc4cd2480a4af70d3b30ecd14d296243e73e7245ba064b753e4c0b25acdf','[]','0.5.8');
INSERT INTO "block_schema" VALUES('38088f46-be16-47fd-952a-9d0cb98f0738','2026-11-26 20:19:14.992679','2026-11-26 20:19:14.992699','{"title": "GcsBucket", "description": "Block used to store data using GCP Cloud Storage Buckets.\n\nNote! `GcsBucket` in `prefect-gcp` is a unique block, separate from `GCS`\nin core Prefect. `GcsBucket` does not use `gcsfs` under the hood,\ninstead using the `google-cloud-storage` package, and offers more configuration\nand functionality.", "type": "object", "properties": {"bucket": {"title": "Bucket", "description": "Name of the bucket.", "type": "string"}, "gcp_credentials": {"title": "Gcp Credentials", "description": "The credentials to authenticate with GCP.", "allOf": [{"$ref": "#/definitions/GcpCredentials"}]}, "bucket_folder": {"title": "Bucket Folder", "description": "A default path to a folder within the GCS bucket to use for reading and writing objects.", "default": "", "type": "string"}}, "required": ["bucket"], "block_type_slug": "gcs-bucket", "secret_fields": ["gcp_credentials.service_account_info.*"]}','967731f1-ac2f-4e94-b95a-3e5702581057','sha256:6f44cdbd523fb8d4029fbc504a89095d67d27439aec09d2c1871b03a1f4e14e9','["get-directory", "put-directory", "read-path", "write-path"]','0.5.8');
INSERT INTO "block_schema" VALUES('f13a364a-a528-46fb-918d-fac1efeb0d12','2026-11-26 20:19:15.029241','2026-11-26 20:19:15.029265','{"title": "GitHubCredentials", "description": "Block used to manage GitHub authentication.", "type": "object", "properties": {"token": {"title": "Token", "description": "A GitHub personal access token (PAT).", "type": "string", "writeOnly": true, "format": "password"}}, "block_type_slug": "github-credentials", "secret_fields": ["token"]}','5b6c7461-f3ef-4693-b65e-65267655e908','sha256:74a34b668838ba661d9160ab127053dd44a22dd04e89562839645791e70d046a','[]','0.2.2');
INSERT INTO "block_schema" VALUES('f1afbdf6-cc8e-49a8-aadc-92a202a4bbc8','2026-11-26 20:19:15.135411','2026-11-26 20:19:15.135436','{"title": "GitHubRepository", "description": "Interact with files stored on GitHub repositories.", "type": "object", "properties": {"repository_url": {"title": "Repository URL", "description": "The URL of a GitHub repository to read from, in either HTTPS or SSH format. If you are using a private repo, it must be in the HTTPS format.", "type": "string"}, "reference": {"title": "Reference", "description": "An optional reference to pin to; can be a branch name or tag.", "type": "string"}, "credentials": {"title": "Credentials", "description": "An optional GitHubCredentials block for using private GitHub repos.", "allOf": [{"$ref": "#/definitions/GitHubCredentials"}]}}, "required": ["repository_url"], "block_type_slug": "github-repository", "secret_fields": ["credentials.token"]}','afd091bb-4b60-4ff8-80d1-771323521192','sha256:3d2b2de1cd9336264ccc73f7078264d9053dc956941136516e18050c9953abf0','["get-directory"]','0.2.2');
INSERT INTO "block_schema" VALUES('b3f26617-4023-4c96-8629-5b595fc2d24a','2026-11-26 20:19:15.445869','2026-11-26 20:19:15.445891','{"title": "GitLabCredentials", "description": "Store a GitLab personal access token to interact with private GitLab\nrepositories.", "type": "object", "properties": {"token": {"title": "Token", "description": "A GitLab Personal Access Token with read_repository scope.", "name": "Personal Access Token", "type": "string", "writeOnly": true, "format": "password"}, "url": {"title": "URL", "description": "URL to self-hosted GitLab instances.", "type": "string"}}, "block_type_slug": "gitlab-credentials", "secret_fields": ["token"]}','d12ffa9b-52f8-4e05-80c8-82b55ef16481','sha256:7d8d6317127bc66afe9e97ae5658ee8e1decdc598350eb292fb62be379f0246c','[]','0.2.2');
INSERT INTO "block_schema" VALUES('0d76c64d-5072-4e27-8549-398a98fce044','2026-11-26 20:19:15.752548','2026-11-26 20:19:15.752564','{"title": "GitLabRepository", "description": "Interact with files stored in GitLab repositories.", "type": "object", "properties": {"repository": {"title": "Repository", "description": "The URL of a GitLab repository to read from, in either HTTP/HTTPS or SSH format.", "type": "string"}, "reference": {"title": "Reference", "description": "An optional reference to pin to; can be a branch name or tag.", "type": "string"}, "credentials": {"title": "Credentials", "description": "An optional GitLab Credentials block for authenticating with private GitLab repos.", "allOf": [{"$ref": "#/definitions/GitLabCredentials"}]}}, "required": ["repository"], "block_type_slug": "gitlab-repository", "secret_fields": ["credentials.token"]}','07e00828-aa61-4c45-98cc-a74c3de969de','sha256:ac874a97e2ff2403a4b63181b6ae85dd51b4a0df0337d290d922627f5123af44','["get-directory"]','0.2.2');
INSERT INTO "block_schema" VALUES('7f29c76c-41f7-4aeb-ae89-30df3435fe57','2026-11-26 20:19:16.035503','2026-11-26 20:19:16.035524','{"title": "KubernetesClusterConfig", "description": "Stores configuration for interaction with Kubernetes clusters.\n\nSee `from_file` for creation.", "type": "object", "properties": {"config": {"title": "Config", "description": "The entire contents of a kubectl config file.", "type": "object"}, "context_name": {"title": "Context Name", "description": "The name of the kubectl context to use.", "type": "string"}}, "required": ["config", "context_name"], "block_type_slug": "kubernetes-cluster-config", "secret_fields": []}','7ffbdb51-b22c-404d-8517-8ec7d9e1dc64','sha256:90d421e948bfbe4cdc98b124995f0edd0f84b0837549ad1390423bad8e31cf3b','[]','0.4.0');
INSERT INTO "block_schema" VALUES('1018071a-7e83-4500-afef-b4359f9320a7','2026-11-26 20:19:16.188482','2026-11-26 20:19:16.188508','{"title": "KubernetesCredentials", "description": "Credentials block for generating configured Kubernetes API clients.", "type": "object", "properties": {"cluster_config": {"$ref": "#/definitions/KubernetesClusterConfig"}}, "block_type_slug": "kubernetes-credentials", "secret_fields": []}','d438e73d-379b-4f90-b350-f6f6a44c31c6','sha256:957fa8dca90bd1b5fb9c575ee09e80b454116c0b134287fbc2eff47a72564c3b','[]','0.3.7');
INSERT INTO "block_schema" VALUES('a7c33d21-c67c-47e1-9338-07cdd355027d','2026-11-26 20:19:16.383044','2026-11-26 20:19:16.383062','{"title": "ShellOperation", "description": "A block representing a shell operation, containing multiple commands.\n\nFor long-lasting operations, use the trigger method and utilize the block as a\ncontext manager for automatic closure of processes when context is exited.\nIf not, manually call the close method to close processes.\n\nFor short-lasting operations, use the run method. Context is automatically managed\nwith this method.", "type": "object", "properties": {"commands": {"title": "Commands", "description": "A list of commands to execute sequentially.", "type": "array", "items": {"type": "string"}}, "stream_output": {"title": "Stream Output", "description": "Whether to stream output.", "default": true, "type": "boolean"}, "env": {"title": "Environment Variables", "description": "Environment variables to use for the subprocess.", "type": "object", "additionalProperties": {"type": "string"}}, "working_dir": {"title": "Working Directory", "description": "The absolute path to the working directory the command will be executed within.", "format": "directory-path", "type": "string"}, "shell": {"title": "Shell", "description": "The shell to run the command with; if unset, defaults to `powershell` on Windows and `bash` on other platforms.", "type": "string"}, "extension": {"title": "Extension", "description": "The extension to use for the temporary file; if unset, defaults to `.ps1` on Windows and `.sh` on other platforms.", "type": "string"}}, "required": ["commands"], "block_type_slug": "shell-operation", "secret_fields": []}','dd015d8f-5087-4615-8b12-c8113c901e9d','sha256:9525e2fd40af302916ff7a4c33ec9c0e20d8970b09243ca010d729fac144811d','[]','0.2.2');
INSERT INTO "block_schema" VALUES('6911acd9-a776-41f9-b4c0-63cc4c938e6d','2026-11-26 20:19:16.449919','2026-11-26 20:19:16.449937','{"title": "SlackCredentials", "description": "Block holding Slack credentials for use in tasks and flows.", "type": "object", "properties": {"token": {"title": "Token", "description": "Bot user OAuth token for the Slack app used to perform actions.", "type": "string", "writeOnly": true, "format": "password"}}, "required": ["token"], "block_type_slug": "slack-credentials", "secret_fields": ["token"]}','ffdaac01-ea1e-4f4b-9e58-df8e01d93b98','sha256:f79058d8fcf22ed575f824b27daa68a52fedaa0e40f7a8a542d4ac9cf3ee8317','[]','0.2.2');
INSERT INTO "block_schema" VALUES('0fc1eb80-85bb-4fbb-91a5-bca8e998bdd2','2026-11-26 20:19:16.529501','2026-11-26 20:19:16.529519','{"title": "SnowflakeConnector", "description": "Perform data operations against a Snowflake database.", "type": "object", "properties": {"credentials": {"title": "Credentials", "description": "The credentials to authenticate with Snowflake.", "allOf": [{"$ref": "#/definitions/SnowflakeCredentials"}]}, "database": {"title": "Database", "description": "The name of the default database to use.", "type": "string"}, "warehouse": {"title": "Warehouse", "description": "The name of the default warehouse to use.", "type": "string"}, "schema": {"title": "Schema", "description": "The name of the default schema to use.", "type": "string"}, "fetch_size": {"title": "Fetch Size", "description": "The default number of rows to fetch at a time.", "default": 1, "type": "integer"}, "poll_frequency_s": {"title": "Poll Frequency [seconds]", "description": "The number of seconds between checking query status for long running queries.", "default": 1, "type": "integer"}}, "required": ["credentials", "database", "warehouse", "schema"], "block_type_slug": "snowflake-connector", "secret_fields": ["credentials.password", "credentials.private_key", "credentials.private_key_passphrase", "credentials.token"]}','dd250648-024f-460a-9baa-27e680e887c6','sha256:dd0d36d69bbe0d44870fd754f3c00754e37e3f52209590083eaee4c585ce0bd0','[]','0.27.3');
INSERT INTO "block_schema" VALUES('5cd4b9c7-c5b3-45cf-891a-9675451fd8a7','2026-11-26 20:19:16.745613','2026-11-26 20:19:16.745632','{"title": "SnowflakeCredentials", "description": "Block used to manage authentication with Snowflake.", "type": "object", "properties": {"account": {"title": "Account", "description": "The snowflake account name.", "example": "nh12345.us-east-2.aws", "type": "string"}, "user": {"title": "User", "description": "The user name used to authenticate.", "type": "string"}, "password": {"title": "Password", "description": "The password used to authenticate.", "type": "string", "writeOnly": true, "format": "password"}, "private_key": {"title": "Private Key", "description": "The PEM used to authenticate.", "type": "string", "writeOnly": true, "format": "password"}, "private_key_path": {"title": "Private Key Path", "description": "The path to the private key.", "type": "string", "format": "path"}, "private_key_passphrase": {"title": "Private Key Passphrase", "description": "The password to use for the private key.", "type": "string", "writeOnly": true, "format": "password"}, "authenticator": {"title": "Authenticator", "description": "The type of authenticator to use for initializing connection.", "default": "snowflake", "enum": ["snowflake", "snowflake_jwt", "externalbrowser", "okta_endpoint", "oauth", "username_password_mfa"], "type": "string"}, "token": {"title": "Token", "description": "The OAuth or JWT Token to provide when authenticator is set to `oauth`.", "type": "string", "writeOnly": true, "format": "password"}, "endpoint": {"title": "Endpoint", "description": "The Okta endpoint to use when authenticator is set to `okta_endpoint`.", "type": "string"}, "role": {"title": "Role", "description": "The name of the default role to use.", "type": "string"}, "autocommit": {"title": "Autocommit", "description": "Whether to automatically commit.", "type": "boolean"}}, "required": ["account", "user"], "block_type_slug": "snowflake-credentials", "secret_fields": ["password", "private_key", "private_key_passphrase", "token"]}','4781e74e-dddb-4fa8-88ad-39c6aa4aaa93','sha256:b24edfb413527c951cb2a8b4b4c16aec096523f871d941889e29ac2e6e92e036','[]','0.27.3');
INSERT INTO "block_schema" VALUES('67dd700b-e771-468a-ba67-78869c255bdb','2026-11-26 20:19:16.916703','2026-11-26 20:19:16.916723','{"title": "DatabaseCredentials", "description": "Block used to manage authentication with a database.", "type": "object", "properties": {"driver": {"title": "Driver", "description": "The driver name to use.", "anyOf": [{"$ref": "#/definitions/AsyncDriver"}, {"$ref": "#/definitions/SyncDriver"}, {"type": "string"}]}, "username": {"title": "Username", "description": "The user name used to authenticate.", "type": "string"}, "password": {"title": "Password", "description": "The password used to authenticate.", "type": "string", "writeOnly": true, "format": "password"}, "database": {"title": "Database", "description": "The name of the database to use.", "type": "string"}, "host": {"title": "Host", "description": "The host address of the database.", "type": "string"}, "port": {"title": "Port", "description": "The port to connect to the database.", "type": "string"}, "query": {"title": "Query", "description": "A dictionary of string keys to string values to be passed to the dialect and/or the DBAPI upon connect. To specify non-string parameters to a Python DBAPI directly, use connect_args.", "type": "object", "additionalProperties": {"type": "string"}}, "url": {"title": "Url", "description": "Manually create and provide a URL to create the engine, this is useful for external dialects, e.g. Snowflake, because some of the params, such as ''warehouse'', is not directly supported in the vanilla `sqlalchemy.engine.URL.create` method; do not provide this alongside with other URL params as it will raise a `ValueError`.", "minLength": 1, "maxLength": 65536, "format": "uri", "type": "string"}, "connect_args": {"title": "Connect Args", "description": "The options which will be passed directly to the DBAPI''s connect() method as additional keyword arguments.", "type": "object"}}, "block_type_slug": "database-credentials", "secret_fields": ["password"], "definitions": {"AsyncDriver": {"title": "AsyncDriver", "description": "Known dialects with their corresponding async drivers.\n\nAttributes:\n    POSTGRESQL_ASYNCPG (Enum): [postgresql+asyncpg](https://docs.sqlalchemy.org/en/14/dialects/postgresql.html#module-sqlalchemy.dialects.postgresql.asyncpg)\n\n    SQLITE_AIOSQLITE (Enum): [sqlite+aiosqlite](https://docs.sqlalchemy.org/en/14/dialects/sqlite.html#module-sqlalchemy.dialects.sqlite.aiosqlite)\n\n    MYSQL_ASYNCMY (Enum): [mysql+asyncmy](https://docs.sqlalchemy.org/en/14/dialects/mysql.html#module-sqlalchemy.dialects.mysql.asyncmy)\n    MYSQL_AIOMYSQL (Enum): [mysql+aiomysql](https://docs.sqlalchemy.org/en/14/dialects/mysql.html#module-sqlalchemy.dialects.mysql.aiomysql)", "enum": ["postgresql+asyncpg", "sqlite+aiosqlite", "mysql+asyncmy", "mysql+aiomysql"]}, "SyncDriver": {"title": "SyncDriver", "description": "Known dialects with their corresponding sync drivers.\n\nAttributes:\n    POSTGRESQL_PSYCOPG2 (Enum): [postgresql+psycopg2](https://docs.sqlalchemy.org/en/14/dialects/postgresql.html#module-sqlalchemy.dialects.postgresql.psycopg2)\n    POSTGRESQL_PG8000 (Enum): [postgresql+pg8000](https://docs.sqlalchemy.org/en/14/dialects/postgresql.html#module-sqlalchemy.dialects.postgresql.pg8000)\n    POSTGRESQL_PSYCOPG2CFFI (Enum): [postgresql+psycopg2cffi](https://docs.sqlalchemy.org/en/14/dialects/postgresql.html#module-sqlalchemy.dialects.postgresql.psycopg2cffi)\n    POSTGRESQL_PYPOSTGRESQL (Enum): [postgresql+pypostgresql](https://docs.sqlalchemy.org/en/14/dialects/postgresql.html#module-sqlalchemy.dialects.postgresql.pypostgresql)\n    POSTGRESQL_PYGRESQL (Enum): [postgresql+pygresql](https://docs.sqlalchemy.org/en/14/dialects/postgresql.html#module-sqlalchemy.dialects.postgresql.pygresql)\n\n    MYSQL_MYSQLDB (Enum): [mysql+mysqldb](https://docs.sqlalchemy.org/en/14/dialects/mysql.html#module-sqlalchemy.dialects.mysql.mysqldb)\n    MYSQL_PYMYSQL (Enum): [mysql+pymysql](https://docs.sqlalchemy.org/en/14/dialects/mysql.html#module-sqlalchemy.dialects.mysql.pymysql)\n    MYSQL_MYSQLCONNECTOR (Enum): [mysql+mysqlconnector](https://docs.sqlalchemy.org/en/14/dialects/mysql.html#module-sqlalchemy.dialects.mysql.mysqlconnector)\n    MYSQL_CYMYSQL (Enum): [mysql+cymysql](https://docs.sqlalchemy.org/en/14/dialects/mysql.html#module-sqlalchemy.dialects.mysql.cymysql)\n    MYSQL_OURSQL (Enum): [mysql+oursql](https://docs.sqlalchemy.org/en/14/dialects/mysql.html#module-sqlalchemy.dialects.mysql.oursql)\n    MYSQL_PYODBC (Enum): [mysql+pyodbc](https://docs.sqlalchemy.org/en/14/dialects/mysql.html#module-sqlalchemy.dialects.mysql.pyodbc)\n\n    SQLITE_PYSQLITE (Enum): [sqlite+pysqlite](https://docs.sqlalchemy.org/en/14/dialects/sqlite.html#module-sqlalchemy.dialects.sqlite.pysqlite)\n    SQLITE_PYSQLCIPHER (Enum): [sqlite+pysqlcipher](https://docs.sqlalchemy.org/en/14/dialects/sqlite.html#module-sqlalchemy.dialects.sqlite.pysqlcipher)\n\n    ORACLE_CX_ORACLE (Enum): [oracle+cx_oracle](https://docs.sqlalchemy.org/en/14/dialects/oracle.html#module-sqlalchemy.dialects.oracle.cx_oracle)\n\n    MSSQL_PYODBC (Enum): [mssql+pyodbc](https://docs.sqlalchemy.org/en/14/dialects/mssql.html#module-sqlalchemy.dialects.mssql.pyodbc)\n    MSSQL_MXODBC (Enum): [mssql+mxodbc](https://docs.sqlalchemy.org/en/14/dialects/mssql.html#module-sqlalchemy.dialects.mssql.mxodbc)\n    MSSQL_PYMSSQL (Enum): [mssql+pymssql](https://docs.sqlalchemy.org/en/14/dialects/mssql.html#module-sqlalchemy.dialects.mssql.pymssql)", "enum": ["postgresql+psycopg2", "postgresql+pg8000", "postgresql+psycopg2cffi", "postgresql+pypostgresql", "postgresql+pygresql", "mysql+mysqldb", "mysql+pymysql", "mysql+mysqlconnector", "mysql+cymysql", "mysql+oursql", "mysql+pyodbc", "sqlite+pysqlite", "sqlite+pysqlcipher", "oracle+cx_oracle", "mssql+pyodbc", "mssql+mxodbc", "mssql+pymssql"]}}}','1f2acc0c-25e7-4706-8620-b70e42a29cd9','sha256:76d1ccbf0ab2038fea77e9689b91a7c8b6398e080e95d9303f65a93a4c03162e','[]','0.4.0');
INSERT INTO "block_schema" VALUES('090ccc29-5ef1-4fe1-9c28-94466ffaa1be','2026-11-26 20:19:17.035208','2026-11-26 20:19:17.035227','{"title": "SqlAlchemyConnector", "description": "Block used to manage authentication with a database.\n\nUpon instantiating, an engine is created and maintained for the life of\nthe object until the close method is called.\n\nIt is recommended to use this block as a context manager, which will automatically\nclose the engine and its connections when the context is exited.\n\nIt is also recommended that this block is loaded and consumed within a single task\nor flow because if the block is passed across separate tasks and flows,\nthe state of the block''s connection and cursor could be lost.", "type": "object", "properties": {"connection_info": {"title": "Connection Info", "description": "SQLAlchemy URL to create the engine; either create from components or create from a string.", "anyOf": [{"$ref": "#/definitions/ConnectionComponents"}, {"type": "string", "minLength": 1, "maxLength": 65536, "format": "uri"}]}, "connect_args": {"title": "Additional Connection Arguments", "description": "The options which will be passed directly to the DBAPI''s connect() method as additional keyword arguments.", "type": "object"}, "fetch_size": {"title": "Fetch Size", "description": "The number of rows to fetch at a time.", "default": 1, "type": "integer"}}, "required": ["connection_info"], "block_type_slug": "sqlalchemy-connector", "secret_fields": ["connection_info.password"], "definitions": {"ConnectionComponents": {"title": "ConnectionComponents", "description": "Parameters to use to create a SQLAlchemy engine URL.\n\nAttributes:\n    driver: The driver name to use.\n    database: The name of the database to use.\n    username: The user name used to authenticate.\n    password: The password used to authenticate.\n    host: The host address of the database.\n    port: The port to connect to the database.\n    query: A dictionary of string keys to string values to be passed to the dialect\n        and/or the DBAPI upon connect.", "type": "object", "properties": {"driver": {"title": "Driver", "description": "The driver name to use.", "anyOf": [{"$ref": "#/definitions/AsyncDriver"}, {"$ref": "#/definitions/SyncDriver"}, {"type": "string"}]}, "database": {"title": "Database", "description": "The name of the database to use.", "type": "string"}, "username": {"title": "Username", "description": "The user name used to authenticate.", "type": "string"}, "password": {"title": "Password", "description": "The password used to authenticate.", "type": "string", "writeOnly": true, "format": "password"}, "host": {"title": "Host", "description": "The host address of the database.", "type": "string"}, "port": {"title": "Port", "description": "The port to connect to the database.", "type": "string"}, "query": {"title": "Query", "description": "A dictionary of string keys to string values to be passed to the dialect and/or the DBAPI upon connect. To specify non-string parameters to a Python DBAPI directly, use connect_args.", "type": "object", "additionalProperties": {"type": "string"}}}, "required": ["driver", "database"]}, "AsyncDriver": {"title": "AsyncDriver", "description": "Known dialects with their corresponding async drivers.\n\nAttributes:\n    POSTGRESQL_ASYNCPG (Enum): [postgresql+asyncpg](https://docs.sqlalchemy.org/en/14/dialects/postgresql.html#module-sqlalchemy.dialects.postgresql.asyncpg)\n\n    SQLITE_AIOSQLITE (Enum): [sqlite+aiosqlite](https://docs.sqlalchemy.org/en/14/dialects/sqlite.html#module-sqlalchemy.dialects.sqlite.aiosqlite)\n\n    MYSQL_ASYNCMY (Enum): [mysql+asyncmy](https://docs.sqlalchemy.org/en/14/dialects/mysql.html#module-sqlalchemy.dialects.mysql.asyncmy)\n    MYSQL_AIOMYSQL (Enum): [mysql+aiomysql](https://docs.sqlalchemy.org/en/14/dialects/mysql.html#module-sqlalchemy.dialects.mysql.aiomysql)", "enum": ["postgresql+asyncpg", "sqlite+aiosqlite", "mysql+asyncmy", "mysql+aiomysql"]}, "SyncDriver": {"title": "SyncDriver", "description": "Known dialects with their corresponding sync drivers.\n\nAttributes:\n    POSTGRESQL_PSYCOPG2 (Enum): [postgresql+psycopg2](https://docs.sqlalchemy.org/en/14/dialects/postgresql.html#module-sqlalchemy.dialects.postgresql.psycopg2)\n    POSTGRESQL_PG8000 (Enum): [postgresql+pg8000](https://docs.sqlalchemy.org/en/14/dialects/postgresql.html#module-sqlalchemy.dialects.postgresql.pg8000)\n    POSTGRESQL_PSYCOPG2CFFI (Enum): [postgresql+psycopg2cffi](https://docs.sqlalchemy.org/en/14/dialects/postgresql.html#module-sqlalchemy.dialects.postgresql.psycopg2cffi)\n    POSTGRESQL_PYPOSTGRESQL (Enum): [postgresql+pypostgresql](https://docs.sqlalchemy.org/en/14/dialects/postgresql.html#module-sqlalchemy.dialects.postgresql.pypostgresql)\n    POSTGRESQL_PYGRESQL (Enum): [postgresql+pygresql](https://docs.sqlalchemy.org/en/14/dialects/postgresql.html#module-sqlalchemy.dialects.postgresql.pygresql)\n\n    MYSQL_MYSQLDB (Enum): [mysql+mysqldb](https://docs.sqlalchemy.org/en/14/dialects/mysql.html#module-sqlalchemy.dialects.mysql.mysqldb)\n    MYSQL_PYMYSQL (Enum): [mysql+pymysql](https://docs.sqlalchemy.org/en/14/dialects/mysql.html#module-sqlalchemy.dialects.mysql.pymysql)\n    MYSQL_MYSQLCONNECTOR (Enum): [mysql+mysqlconnector](https://docs.sqlalchemy.org/en/14/dialects/mysql.html#module-sqlalchemy.dialects.mysql.mysqlconnector)\n    MYSQL_CYMYSQL (Enum): [mysql+cymysql](https://docs.sqlalchemy.org/en/14/dialects/mysql.html#module-sqlalchemy.dialects.mysql.cymysql)\n    MYSQL_OURSQL (Enum): [mysql+oursql](https://docs.sqlalchemy.org/en/14/dialects/mysql.html#module-sqlalchemy.dialects.mysql.oursql)\n    MYSQL_PYODBC (Enum): [mysql+pyodbc](https://docs.sqlalchemy.org/en/14/dialects/mysql.html#module-sqlalchemy.dialects.mysql.pyodbc)\n\n    SQLITE_PYSQLITE (Enum): [sqlite+pysqlite](https://docs.sqlalchemy.org/en/14/dialects/sqlite.html#module-sqlalchemy.dialects.sqlite.pysqlite)\n    SQLITE_PYSQLCIPHER (Enum): [sqlite+pysqlcipher](https://docs.sqlalchemy.org/en/14/dialects/sqlite.html#module-sqlalchemy.dialects.sqlite.pysqlcipher)\n\n    ORACLE_CX_ORACLE (Enum): [oracle+cx_oracle](https://docs.sqlalchemy.org/en/14/dialects/oracle.html#module-sqlalchemy.dialects.oracle.cx_oracle)\n\n    MSSQL_PYODBC (Enum): [mssql+pyodbc](https://docs.sqlalchemy.org/en/14/dialects/mssql.html#module-sqlalchemy.dialects.mssql.pyodbc)\n    MSSQL_MXODBC (Enum): [mssql+mxodbc](https://docs.sqlalchemy.org/en/14/dialects/mssql.html#module-sqlalchemy.dialects.mssql.mxodbc)\n    MSSQL_PYMSSQL (Enum): [mssql+pymssql](https://docs.sqlalchemy.org/en/14/dialects/mssql.html#module-sqlalchemy.dialects.mssql.pymssql)", "enum": ["postgresql+psycopg2", "postgresql+pg8000", "postgresql+psycopg2cffi", "postgresql+pypostgresql", "postgresql+pygresql", "mysql+mysqldb", "mysql+pymysql", "mysql+mysqlconnector", "mysql+cymysql", "mysql+oursql", "mysql+pyodbc", "sqlite+pysqlite", "sqlite+pysqlcipher", "oracle+cx_oracle", "mssql+pyodbc", "mssql+mxodbc", "mssql+pymssql"]}}}','ff880278-faa4-4dcf-993d-3f26204270b3','sha256:01e6c0bdaac125860811b201f5a5e98ffefd5f8a49f1398b6996aec362643acc','[]','0.4.0');
CREATE TABLE block_schema_reference (
	id CHAR(36) DEFAULT (
    (
        lower(hex(randomblob(4))) 
        || '-' 
        || lower(hex(randomblob(2))) 
        || '-4' 
        || substr(lower(hex(randomblob(2))),2) 
        || '-' 
        || substr('89ab',abs(random()) % 4 + 1, 1) 
        || substr(lower(hex(randomblob(2))),2) 
        || '-' 
        || lower(hex(randomblob(6)))
    )
    ) NOT NULL, 
	created DATETIME DEFAULT (strftime('%Y-%m-%d %H:%M:%f000', 'now')) NOT NULL, 
	updated DATETIME DEFAULT (strftime('%Y-%m-%d %H:%M:%f000', 'now')) NOT NULL, 
	name VARCHAR NOT NULL, 
	parent_block_schema_id CHAR(36) NOT NULL, 
	reference_block_schema_id CHAR(36) NOT NULL, 
	CONSTRAINT pk_block_schema_reference PRIMARY KEY (id), 
	CONSTRAINT fk_block_schema_reference__parent_block_schema_id__block_schema FOREIGN KEY(parent_block_schema_id) REFERENCES block_schema (id) ON DELETE cascade, 
	CONSTRAINT fk_block_schema_reference__reference_block_schema_id__block_schema FOREIGN KEY(reference_block_schema_id) REFERENCES block_schema (id) ON DELETE cascade
);
INSERT INTO "block_schema_reference" VALUES('459f61ad-2779-417c-8d1a-2ec5bedf21de','2026-11-26 20:19:08.218997','2026-11-26 20:19:08.219020','aws_credentials','6d8bb493-331e-4a46-b52a-f88d1be83c90','98a4091a-b2c3-4174-81be-d6ce9dfe89dd');
INSERT INTO "block_schema_reference" VALUES('0c0316e2-e3d2-45dc-bd18-897691bc9ac6','2026-11-26 20:19:08.585946','2026-11-26 20:19:08.585973','aws_credentials','a598910c-3c3e-41fd-b400-c10472afaac0','98a4091a-b2c3-4174-81be-d6ce9dfe89dd');
INSERT INTO "block_schema_reference" VALUES('31e3b060-19c7-4ac7-a020-f72c6d1a833f','2026-11-26 20:19:08.871562','2026-11-26 20:19:08.871577','credentials','807bc854-fd08-4023-aa14-1948733b2026','7dbdd211-ecdf-4cd9-a166-dac3149bc0ee');
INSERT INTO "block_schema_reference" VALUES('d856b474-631d-4f5a-ad5f-b03fc2b4eb43','2026-11-26 20:19:08.939822','2026-11-26 20:19:08.939836','credentials','807bc854-fd08-4023-aa14-1948733b2026','98a4091a-b2c3-4174-81be-d6ce9dfe89dd');
INSERT INTO "block_schema_reference" VALUES('9d1ba5a7-6d9e-48bf-8085-e990db0d0d9e','2026-11-26 20:19:09.150385','2026-11-26 20:19:09.150400','credentials','57881e46-ec86-44ed-8873-1d5999922dd5','e3e87ce9-36c9-4593-ab94-64b48f332827');
INSERT INTO "block_schema_reference" VALUES('7cd13df2-ed64-4600-857d-c794ae620bff','2026-11-26 20:19:09.945168','2026-11-26 20:19:09.945189','bitbucket_credentials','905ba024-e518-44a0-8202-a5583d57c2b4','f5177f54-e9d9-45b9-b642-3226bb9aae4c');
INSERT INTO "block_schema_reference" VALUES('2d0e58bc-c3f1-43c9-ae80-4c4ce56db518','2026-11-26 20:19:10.543801','2026-11-26 20:19:10.543822','credentials','d4f57b58-9ef7-4205-9b77-bde797bc119b','1dbe0200-18d0-4be7-baef-8c7494cad3f2');
INSERT INTO "block_schema_reference" VALUES('32da8a10-c764-4f13-bb4b-47c72d3f6f6b','2026-11-26 20:19:10.995955','2026-11-26 20:19:10.995976','credentials','e9034876-1261-4211-a0f2-69f69d9def1c','d7da5ee6-756a-4f65-b258-89c43063abe9');
INSERT INTO "block_schema_reference" VALUES('3c42a4c4-92fc-4432-9d45-4a0730ac9e76','2026-11-26 20:19:11.188006','2026-11-26 20:19:11.188030','credentials','e9034876-1261-4211-a0f2-69f69d9def1c','91666e77-b88b-42ef-aed2-ea1ea1af67db');
INSERT INTO "block_schema_reference" VALUES('633210f9-1083-49e6-9887-3f92403c81b1','2026-11-26 20:19:12.101602','2026-11-26 20:19:12.101626','credentials','21b71fff-aacc-4bfb-9fbb-02534104528b','6ccf15cb-5dbb-40a8-92cf-e6202215e1bb');
INSERT INTO "block_schema_reference" VALUES('5eafa824-16d8-4214-b076-77c0fe2fcf22','2026-11-26 20:19:12.146360','2026-11-26 20:19:12.146398','connector','4aa51753-3c9b-4cca-ba24-5a153e808a6a','21b71fff-aacc-4bfb-9fbb-02534104528b');
INSERT INTO "block_schema_reference" VALUES('b6e4f185-a4b7-4269-856d-4748f6ae4ad2','2026-11-26 20:19:12.175281','2026-11-26 20:19:12.175302','target_configs','52945f6d-f8ef-434d-a974-18cc9720889b','4aa51753-3c9b-4cca-ba24-5a153e808a6a');
INSERT INTO "block_schema_reference" VALUES('fd2331bd-42d0-48f6-a958-0adec01e9446','2026-11-26 20:19:12.286813','2026-11-26 20:19:12.286839','target_configs','52945f6d-f8ef-434d-a974-18cc9720889b','d4f57b58-9ef7-4205-9b77-bde797bc119b');
INSERT INTO "block_schema_reference" VALUES('a4b7daa6-5c1b-499d-9ef8-4082795d6428','2026-11-26 20:19:12.394612','2026-11-26 20:19:12.394634','target_configs','52945f6d-f8ef-434d-a974-18cc9720889b','e9034876-1261-4211-a0f2-69f69d9def1c');
INSERT INTO "block_schema_reference" VALUES('92899117-746a-444c-ba4f-e1a7b5dcf5d0','2026-11-26 20:19:12.630808','2026-11-26 20:19:12.630831','target_configs','52945f6d-f8ef-434d-a974-18cc9720889b','79ae886a-1221-4937-be57-bea932501a27');
INSERT INTO "block_schema_reference" VALUES('ec3f596a-6d2e-4fc2-8a65-9dc22ad4146a','2026-11-26 20:19:12.762638','2026-11-26 20:19:12.762663','global_configs','52945f6d-f8ef-434d-a974-18cc9720889b','2dd71504-8513-4d25-8acc-f34b0ea40d60');
INSERT INTO "block_schema_reference" VALUES('bb7ae60f-c03a-4549-b60f-d06520f19f90','2026-11-26 20:19:13.228607','2026-11-26 20:19:13.228631','credentials','2440d4bb-80ab-438a-b6c4-f2132b33ee00','694c0ff1-e163-4367-90e0-1e3086b65547');
INSERT INTO "block_schema_reference" VALUES('7fa7fad3-07d2-405c-9f16-5d93605fcf0e','2026-11-26 20:19:13.264461','2026-11-26 20:19:13.264482','connector','4e162e24-43a5-4d2d-8e4e-83037b7c90e7','2440d4bb-80ab-438a-b6c4-f2132b33ee00');
INSERT INTO "block_schema_reference" VALUES('18ecb349-e9f8-457c-821e-9da3fbeca982','2026-11-26 20:19:13.928686','2026-11-26 20:19:13.928712','dbt_cli_profile','34129669-4424-4cf0-b7cb-027fdea01814','52945f6d-f8ef-434d-a974-18cc9720889b');
INSERT INTO "block_schema_reference" VALUES('52444df0-db4a-4449-9dcb-c7227d1c92e0','2026-11-26 20:19:14.828617','2026-11-26 20:19:14.828638','gcp_credentials','b059da3d-0833-4bb6-b7e4-8e6a9e8410f2','1dbe0200-18d0-4be7-baef-8c7494cad3f2');
INSERT INTO "block_schema_reference" VALUES('71441fa6-e4b9-4e8e-ab4a-7e0723ebed60','2026-11-26 20:19:14.980064','2026-11-26 20:19:14.980082','gcp_credentials','d037272f-8a9b-498e-94b6-22d26757451e','e5a23508-31be-477e-b525-812782c6dc7e');
INSERT INTO "block_schema_reference" VALUES('69ec4a19-5321-4eba-88bd-0d86594ba7c4','2026-11-26 20:19:15.004859','2026-11-26 20:19:15.004876','gcp_credentials','38088f46-be16-47fd-952a-9d0cb98f0738','e5a23508-31be-477e-b525-812782c6dc7e');
INSERT INTO "block_schema_reference" VALUES('3c0695c0-5103-4cd3-92e9-ff94ea3d5e46','2026-11-26 20:19:15.286681','2026-11-26 20:19:15.286705','credentials','f1afbdf6-cc8e-49a8-aadc-92a202a4bbc8','f13a364a-a528-46fb-918d-fac1efeb0d12');
INSERT INTO "block_schema_reference" VALUES('5ab12668-90d4-4108-95e9-4d4c0ee17558','2026-11-26 20:19:15.953065','2026-11-26 20:19:15.953082','credentials','0d76c64d-5072-4e27-8549-398a98fce044','b3f26617-4023-4c96-8629-5b595fc2d24a');
INSERT INTO "block_schema_reference" VALUES('e676cd76-8520-465a-8d80-347b7ccab2a7','2026-11-26 20:19:16.292532','2026-11-26 20:19:16.292558','cluster_config','1018071a-7e83-4500-afef-b4359f9320a7','7f29c76c-41f7-4aeb-ae89-30df3435fe57');
INSERT INTO "block_schema_reference" VALUES('36793c36-759b-47f3-acdc-cca48ed3a6c1','2026-11-26 20:19:16.640207','2026-11-26 20:19:16.640227','credentials','0fc1eb80-85bb-4fbb-91a5-bca8e998bdd2','694c0ff1-e163-4367-90e0-1e3086b65547');
CREATE TABLE "block_type" (
	id CHAR(36) DEFAULT ((
        lower(hex(randomblob(4))) 
        || '-' 
        || lower(hex(randomblob(2))) 
        || '-4' 
        || substr(lower(hex(randomblob(2))),2) 
        || '-' 
        || substr('89ab',abs(random()) % 4 + 1, 1) 
        || substr(lower(hex(randomblob(2))),2) 
        || '-' 
        || lower(hex(randomblob(6)))
    )) NOT NULL, 
	created DATETIME DEFAULT (strftime('%Y-%m-%d %H:%M:%f000', 'now')) NOT NULL, 
	updated DATETIME DEFAULT (strftime('%Y-%m-%d %H:%M:%f000', 'now')) NOT NULL, 
	name VARCHAR NOT NULL, 
	logo_url VARCHAR, 
	documentation_url VARCHAR, 
	description VARCHAR, 
	code_example VARCHAR, 
	is_protected BOOLEAN DEFAULT '0' NOT NULL, 
	slug VARCHAR NOT NULL, 
	CONSTRAINT pk_block_type PRIMARY KEY (id)
);
INSERT INTO "block_type" VALUES('6222d962-d43b-474d-a807-002ef43db174','2026-11-26 20:19:00.804690','2026-11-26 20:19:06.295000','Webhook','https://raw.githubusercontent.com/PrefectHQ/prefect/420d0d6a78bb6df1fc18bcf188fdad43c1d22ea9/assets/block-logos/webhook.png','https://docs.prefect.io/latest/automate/events/webhook-triggers','Block that enables calling webhooks.','```python
from prefect.blocks.webhook import Webhook

webhook_block = Webhook.load("BLOCK_NAME")
```',1,'webhook');
INSERT INTO "block_type" VALUES('cec2c4a2-26fa-4766-ac24-60988bde2b82','2026-11-26 20:19:02.684730','2026-11-26 20:19:06.052000','Secret','https://raw.githubusercontent.com/PrefectHQ/prefect/420d0d6a78bb6df1fc18bcf188fdad43c1d22ea9/assets/block-logos/secret.png','https://docs.prefect.io/latest/develop/blocks','A block that represents a secret value. The value stored in this block will be obfuscated when this block is viewed or edited in the UI.','```python
from prefect.blocks.system import Secret

Secret(value="sk-1234567890").save("BLOCK_NAME", overwrite=True)

secret_block = Secret.load("BLOCK_NAME")

# Access the stored secret
secret_block.get()
```',1,'secret');
INSERT INTO "block_type" VALUES('0d4d55cd-9526-4612-b34d-94b72be0bb74','2026-11-26 20:19:02.966748','2026-11-26 20:19:06.548000','Local File System','https://raw.githubusercontent.com/PrefectHQ/prefect/420d0d6a78bb6df1fc18bcf188fdad43c1d22ea9/assets/block-logos/filesystem.png','https://docs.prefect.io/latest/develop/results#specifying-a-default-filesystem','Store data as a file on a local file system.','Load stored local file system config:
```python
from prefect.filesystems import LocalFileSystem

local_file_system_block = LocalFileSystem.load("BLOCK_NAME")
```',1,'local-file-system');
INSERT INTO "block_type" VALUES('aac9243f-3071-439e-bbfd-372204b9a875','2026-11-26 20:19:03.200226','2026-11-26 20:19:03.200247','Slack Webhook','https://raw.githubusercontent.com/PrefectHQ/prefect/420d0d6a78bb6df1fc18bcf188fdad43c1d22ea9/assets/block-logos/slack.png','https://docs.prefect.io/latest/automate/events/automations-triggers#sending-notifications-with-automations','Enables sending notifications via a provided Slack webhook.

Supports both standard Slack webhooks (hooks.slack.com) and Slack GovCloud
webhooks (hooks.slack-gov.com).','Load a saved Slack webhook and send a message:
```python
from prefect.blocks.notifications import SlackWebhook

slack_webhook_block = SlackWebhook.load("BLOCK_NAME")
slack_webhook_block.notify("Hello from Prefect!")
```',0,'slack-webhook');
INSERT INTO "block_type" VALUES('3cc8666b-6e3f-4a89-8873-fa841a98860e','2026-11-26 20:19:03.519972','2026-11-26 20:19:03.519993','Microsoft Teams Webhook','https://raw.githubusercontent.com/PrefectHQ/prefect/420d0d6a78bb6df1fc18bcf188fdad43c1d22ea9/assets/block-logos/microsoft-teams.png','https://docs.prefect.io/latest/automate/events/automations-triggers#sending-notifications-with-automations','Enables sending notifications via a provided Microsoft Teams webhook.','Load a saved Teams webhook and send a message:
```python
from prefect.blocks.notifications import MicrosoftTeamsWebhook
teams_webhook_block = MicrosoftTeamsWebhook.load("BLOCK_NAME")
teams_webhook_block.notify("Hello from Prefect!")
```',0,'ms-teams-webhook');
INSERT INTO "block_type" VALUES('2fd5a830-0bdd-48d5-a964-d8c7ca73432e','2026-11-26 20:19:03.779138','2026-11-26 20:19:03.779154','Pager Duty Webhook','https://raw.githubusercontent.com/PrefectHQ/prefect/420d0d6a78bb6df1fc18bcf188fdad43c1d22ea9/assets/block-logos/pagerduty.png','https://docs.prefect.io/latest/automate/events/automations-triggers#sending-notifications-with-automations','Enables sending notifications via a provided PagerDuty webhook.','Load a saved PagerDuty webhook and send a message:
```python
from prefect.blocks.notifications import PagerDutyWebHook
pagerduty_webhook_block = PagerDutyWebHook.load("BLOCK_NAME")
pagerduty_webhook_block.notify("Hello from Prefect!")
```',0,'pager-duty-webhook');
INSERT INTO "block_type" VALUES('355a9d5b-c68d-40ca-86b3-3a24e587a5f0','2026-11-26 20:19:04.121301','2026-11-26 20:19:04.121311','Twilio SMS','https://raw.githubusercontent.com/PrefectHQ/prefect/420d0d6a78bb6df1fc18bcf188fdad43c1d22ea9/assets/block-logos/twilio.png','https://docs.prefect.io/latest/automate/events/automations-triggers#sending-notifications-with-automations','Enables sending notifications via Twilio SMS.','Load a saved `TwilioSMS` block and send a message:
```python
from prefect.blocks.notifications import TwilioSMS
twilio_webhook_block = TwilioSMS.load("BLOCK_NAME")
twilio_webhook_block.notify("Hello from Prefect!")
```',0,'twilio-sms');
INSERT INTO "block_type" VALUES('fbc3ae7a-3512-42c9-bd61-721b6ae04039','2026-11-26 20:19:04.465801','2026-11-26 20:19:04.465815','Opsgenie Webhook','https://raw.githubusercontent.com/PrefectHQ/prefect/420d0d6a78bb6df1fc18bcf188fdad43c1d22ea9/assets/block-logos/opsgenie.png','https://docs.prefect.io/latest/automate/events/automations-triggers#sending-notifications-with-automations','Enables sending notifications via a provided Opsgenie webhook.','Load a saved Opsgenie webhook and send a message:
```python
from prefect.blocks.notifications import OpsgenieWebhook
opsgenie_webhook_block = OpsgenieWebhook.load("BLOCK_NAME")
opsgenie_webhook_block.notify("Hello from Prefect!")
```',0,'opsgenie-webhook');
INSERT INTO "block_type" VALUES('2d9ec3c5-ab75-4738-88dd-61e085ff7a46','2026-11-26 20:19:04.896568','2026-11-26 20:19:04.896575','Mattermost Webhook','https://raw.githubusercontent.com/PrefectHQ/prefect/420d0d6a78bb6df1fc18bcf188fdad43c1d22ea9/assets/block-logos/mattermost.png','https://docs.prefect.io/latest/automate/events/automations-triggers#sending-notifications-with-automations','Enables sending notifications via a provided Mattermost webhook.','Load a saved Mattermost webhook and send a message:
```python
from prefect.blocks.notifications import MattermostWebhook

mattermost_webhook_block = MattermostWebhook.load("BLOCK_NAME")

mattermost_webhook_block.notify("Hello from Prefect!")
```',0,'mattermost-webhook');
INSERT INTO "block_type" VALUES('5da7797f-f4ee-4db7-b1e7-215a0669253d','2026-11-26 20:19:05.175712','2026-11-26 20:19:05.175722','Discord Webhook','https://raw.githubusercontent.com/PrefectHQ/prefect/420d0d6a78bb6df1fc18bcf188fdad43c1d22ea9/assets/block-logos/discord.png','https://docs.prefect.io/latest/automate/events/automations-triggers#sending-notifications-with-automations','Enables sending notifications via a provided Discord webhook.','Load a saved Discord webhook and send a message:
```python
from prefect.blocks.notifications import DiscordWebhook

discord_webhook_block = DiscordWebhook.load("BLOCK_NAME")

discord_webhook_block.notify("Hello from Prefect!")
```',0,'discord-webhook');
INSERT INTO "block_type" VALUES('a45dc8b3-9b02-4a83-9069-57657ce6a69e','2026-11-26 20:19:05.465667','2026-11-26 20:19:05.465682','Custom Webhook','https://raw.githubusercontent.com/PrefectHQ/prefect/420d0d6a78bb6df1fc18bcf188fdad43c1d22ea9/assets/block-logos/webhook.png','https://docs.prefect.io/latest/automate/events/automations-triggers#sending-notifications-with-automations','Enables sending notifications via any custom webhook.

All nested string param contains `{{key}}` will be substituted with value from context/secrets.

Context values include: `subject`, `body` and `name`.','Load a saved custom webhook and send a message:
```python
from prefect.blocks.notifications import CustomWebhookNotificationBlock

custom_webhook_block = CustomWebhookNotificationBlock.load("BLOCK_NAME")

custom_webhook_block.notify("Hello from Prefect!")
```',0,'custom-webhook');
INSERT INTO "block_type" VALUES('f3fc4c75-d9f8-47ac-a2e7-4568d9a8ca8d','2026-11-26 20:19:05.801786','2026-11-26 20:19:05.801801','Sendgrid Email','https://raw.githubusercontent.com/PrefectHQ/prefect/420d0d6a78bb6df1fc18bcf188fdad43c1d22ea9/assets/block-logos/email.png','https://docs.prefect.io/latest/automate/events/automations-triggers#sending-notifications-with-automations','Enables sending notifications via Sendgrid email service.','Load a saved Sendgrid and send a email message:
```python
from prefect.blocks.notifications import SendgridEmail

sendgrid_block = SendgridEmail.load("BLOCK_NAME")

sendgrid_block.notify("Hello from Prefect!")
```',0,'sendgrid-email');
INSERT INTO "block_type" VALUES('bd90afc3-ca7a-4ab3-97fa-8bbd06ed77c4','2026-11-26 20:19:06.685604','2026-11-26 20:19:06.685613','Remote File System','https://raw.githubusercontent.com/PrefectHQ/prefect/420d0d6a78bb6df1fc18bcf188fdad43c1d22ea9/assets/block-logos/filesystem.png','https://docs.prefect.io/latest/develop/results#specifying-a-default-filesystem','Store data as a file on a remote file system.

Supports any remote file system supported by `fsspec`. The file system is specified
using a protocol. For example, "s3://my-bucket/my-folder/" will use S3.','Load stored remote file system config:
```python
from prefect.filesystems import RemoteFileSystem

remote_file_system_block = RemoteFileSystem.load("BLOCK_NAME")
```',0,'remote-file-system');
INSERT INTO "block_type" VALUES('9ee0a7f6-38c2-48fd-a431-76c40e4d90a6','2026-11-26 20:19:06.959909','2026-11-26 20:19:06.959919','SMB','https://raw.githubusercontent.com/PrefectHQ/prefect/420d0d6a78bb6df1fc18bcf188fdad43c1d22ea9/assets/block-logos/smb.png','https://docs.prefect.io/latest/develop/results#specifying-a-default-filesystem','Store data as a file on a SMB share.','Load stored SMB config:

```python
from prefect.filesystems import SMB
smb_block = SMB.load("BLOCK_NAME")
```',0,'smb');
INSERT INTO "block_type" VALUES('7ed0e585-f976-42cd-8a2f-936db276f749','2026-11-26 20:19:07.230816','2026-11-26 20:19:07.230824','AWS Credentials','https://cdn.sanity.io/images/3ugk85nk/production/d74b16fe84ce626345adf235a47008fea2869a60-225x225.png','https://prefecthq.github.io/prefect-aws/credentials/#prefect_aws.credentials.AwsCredentials','Block used to manage authentication with AWS. AWS authentication is
handled via the `boto3` module. Refer to the
[boto3 docs](https://boto3.amazonaws.com/v1/documentation/api/latest/guide/credentials.html)
for more info about the possible credential configurations. This block is part of the prefect-aws collection. Install prefect-aws with `pip install prefect-aws` to use this block.','Load stored AWS credentials:
```python
from prefect_aws import AwsCredentials

aws_credentials_block = AwsCredentials.load("BLOCK_NAME")
```',0,'aws-credentials');
INSERT INTO "block_type" VALUES('9dd230be-961b-4a7a-8083-0a6d14a16c36','2026-11-26 20:19:07.264610','2026-11-26 20:19:07.264617','AWS Secret','https://cdn.sanity.io/images/3ugk85nk/production/d74b16fe84ce626345adf235a47008fea2869a60-225x225.png','https://prefecthq.github.io/prefect-aws/secrets_manager/#prefect_aws.secrets_manager.AwsSecret','Manages a secret in AWS''s Secrets Manager. This block is part of the prefect-aws collection. Install prefect-aws with `pip install prefect-aws` to use this block.','```python
from prefect_aws.secrets_manager import AwsSecret

aws_secret_block = AwsSecret.load("BLOCK_NAME")
```',0,'aws-secret');
INSERT INTO "block_type" VALUES('ff088f07-43ef-4793-b95c-2265a42a3313','2026-11-26 20:19:07.322766','2026-11-26 20:19:07.322775','Lambda Function','https://cdn.sanity.io/images/3ugk85nk/production/d74b16fe84ce626345adf235a47008fea2869a60-225x225.png','https://prefecthq.github.io/prefect-aws/s3/#prefect_aws.lambda_function.LambdaFunction','Invoke a Lambda function. This block is part of the prefect-aws
collection. Install prefect-aws with `pip install prefect-aws` to use this
block. This block is part of the prefect-aws collection. Install prefect-aws with `pip install prefect-aws` to use this block.','```python
from prefect_aws.lambda_function import LambdaFunction

lambda_function_block = LambdaFunction.load("BLOCK_NAME")
```',0,'lambda-function');
INSERT INTO "block_type" VALUES('93904946-7748-4772-8b2a-ed6c39c9eef0','2026-11-26 20:19:07.348533','2026-11-26 20:19:07.348540','MinIO Credentials','https://cdn.sanity.io/images/3ugk85nk/production/676cb17bcbdff601f97e0a02ff8bcb480e91ff40-250x250.png','https://prefecthq.github.io/prefect-aws/credentials/#prefect_aws.credentials.MinIOCredentials','Block used to manage authentication with MinIO. Refer to the MinIO docs: https://docs.min.io/docs/minio-server-configuration-guide.html for more info about the possible credential configurations. This block is part of the prefect-aws collection. Install prefect-aws with `pip install prefect-aws` to use this block.','Load stored MinIO credentials:
```python
from prefect_aws import MinIOCredentials

minio_credentials_block = MinIOCredentials.load("BLOCK_NAME")
```',0,'minio-credentials');
INSERT INTO "block_type" VALUES('e34a0644-5eff-4631-9330-39a006b7329d','2026-11-26 20:19:07.351434','2026-11-26 20:19:07.351440','S3 Bucket','https://cdn.sanity.io/images/3ugk85nk/production/d74b16fe84ce626345adf235a47008fea2869a60-225x225.png','https://prefecthq.github.io/prefect-aws/s3/#prefect_aws.s3.S3Bucket','Block used to store data using AWS S3 or S3-compatible object storage like MinIO. This block is part of the prefect-aws collection. Install prefect-aws with `pip install prefect-aws` to use this block.','```python
from prefect_aws.s3 import S3Bucket

s3_bucket_block = S3Bucket.load("BLOCK_NAME")
```',0,'s3-bucket');
INSERT INTO "block_type" VALUES('c51cf70a-04b7-4a33-b020-dfe150641911','2026-11-26 20:19:07.354059','2026-11-26 20:19:07.354065','Azure Blob Storage Container','https://cdn.sanity.io/images/3ugk85nk/production/54e3fa7e00197a4fbd1d82ed62494cb58d08c96a-250x250.png','https://prefecthq.github.io/prefect-azure/blob_storage/#prefect_azure.blob_storabe.AzureBlobStorageContainer','Represents a container in Azure Blob Storage.

This class provides methods for downloading and uploading files and folders
to and from the Azure Blob Storage container. This block is part of the prefect-azure collection. Install prefect-azure with `pip install prefect-azure` to use this block.','```python
from prefect_azure.blob_storage import AzureBlobStorageContainer

azure_blob_storage_container_block = AzureBlobStorageContainer.load("BLOCK_NAME")
```',0,'azure-blob-storage-container');
INSERT INTO "block_type" VALUES('2aa3f1ae-2e86-48aa-a6f1-262420082d9a','2026-11-26 20:19:07.356606','2026-11-26 20:19:07.356611','Azure Blob Storage Credentials','https://cdn.sanity.io/images/3ugk85nk/production/54e3fa7e00197a4fbd1d82ed62494cb58d08c96a-250x250.png','https://prefecthq.github.io/prefect-azure/credentials/#prefect_azure.credentials.AzureBlobStorageCredentials','Stores credentials for authenticating with Azure Blob Storage. This block is part of the prefect-azure collection. Install prefect-azure with `pip install prefect-azure` to use this block.','Load stored Azure Blob Storage credentials and retrieve a blob service client:
```python
from prefect_azure import AzureBlobStorageCredentials

azure_credentials_block = AzureBlobStorageCredentials.load("BLOCK_NAME")

blob_service_client = azure_credentials_block.get_blob_client()
```',0,'azure-blob-storage-credentials');
INSERT INTO "block_type" VALUES('0bb4419b-0b20-4827-b282-b75077434bd4','2026-11-26 20:19:07.359164','2026-11-26 20:19:07.359170','Azure Container Instance Credentials','https://cdn.sanity.io/images/3ugk85nk/production/54e3fa7e00197a4fbd1d82ed62494cb58d08c96a-250x250.png','https://prefecthq.github.io/prefect-azure/credentials/#prefect_azure.credentials.AzureContainerInstanceCredentials','Block used to manage Azure Container Instances authentication. Stores Azure Service
Principal authentication data. This block is part of the prefect-azure collection. Install prefect-azure with `pip install prefect-azure` to use this block.','```python
from prefect_azure.credentials import AzureContainerInstanceCredentials

azure_container_instance_credentials_block = AzureContainerInstanceCredentials.load("BLOCK_NAME")
```',0,'azure-container-instance-credentials');
INSERT INTO "block_type" VALUES('72c094a2-b5e2-41bc-b908-b9ec3082d734','2026-11-26 20:19:07.361672','2026-11-26 20:19:07.361678','Azure Cosmos DB Credentials','https://cdn.sanity.io/images/3ugk85nk/production/54e3fa7e00197a4fbd1d82ed62494cb58d08c96a-250x250.png','https://prefecthq.github.io/prefect-azure/credentials/#prefect_azure.credentials.AzureCosmosDbCredentials','Block used to manage Cosmos DB authentication with Azure.
Azure authentication is handled via the `azure` module through
a connection string. This block is part of the prefect-azure collection. Install prefect-azure with `pip install prefect-azure` to use this block.','Load stored Azure Cosmos DB credentials:
```python
from prefect_azure import AzureCosmosDbCredentials
azure_credentials_block = AzureCosmosDbCredentials.load("BLOCK_NAME")
```',0,'azure-cosmos-db-credentials');
INSERT INTO "block_type" VALUES('4fda1af6-b408-4f2f-aa30-a0550efdfbb9','2026-11-26 20:19:07.364508','2026-11-26 20:19:07.364514','AzureML Credentials','https://cdn.sanity.io/images/3ugk85nk/production/54e3fa7e00197a4fbd1d82ed62494cb58d08c96a-250x250.png','https://prefecthq.github.io/prefect-azure/credentials/#prefect_azure.credentials.AzureMlCredentials','Block used to manage authentication with AzureML. Azure authentication is
handled via the `azure` module. This block is part of the prefect-azure collection. Install prefect-azure with `pip install prefect-azure` to use this block.','Load stored AzureML credentials:
```python
from prefect_azure import AzureMlCredentials
azure_ml_credentials_block = AzureMlCredentials.load("BLOCK_NAME")
```',0,'azureml-credentials');
INSERT INTO "block_type" VALUES('073655e1-d9f8-4a82-930b-d945a7b4de08','2026-11-26 20:19:07.367131','2026-11-26 20:19:07.367137','BitBucket Credentials','https://cdn.sanity.io/images/3ugk85nk/production/5d729f7355fb6828c4b605268ded9cfafab3ae4f-250x250.png',NULL,'Store BitBucket credentials to interact with private BitBucket repositories. This block is part of the prefect-bitbucket collection. Install prefect-bitbucket with `pip install prefect-bitbucket` to use this block.','Load stored BitBucket credentials:
```python
from prefect_bitbucket import BitBucketCredentials
bitbucket_credentials_block = BitBucketCredentials.load("BLOCK_NAME")
```',0,'bitbucket-credentials');
INSERT INTO "block_type" VALUES('0301e09f-b71e-4533-9577-0ea3e39c7404','2026-11-26 20:19:07.369659','2026-11-26 20:19:07.369665','BitBucket Repository','https://cdn.sanity.io/images/3ugk85nk/production/5d729f7355fb6828c4b605268ded9cfafab3ae4f-250x250.png',NULL,'Interact with files stored in BitBucket repositories. This block is part of the prefect-bitbucket collection. Install prefect-bitbucket with `pip install prefect-bitbucket` to use this block.','```python
from prefect_bitbucket.repository import BitBucketRepository

bitbucket_repository_block = BitBucketRepository.load("BLOCK_NAME")
```',0,'bitbucket-repository');
INSERT INTO "block_type" VALUES('41af4174-3eb1-4561-94a2-cc5493541774','2026-11-26 20:19:07.372367','2026-11-26 20:19:07.372374','Databricks Credentials','https://cdn.sanity.io/images/3ugk85nk/production/ff9a2573c23954bedd27b0f420465a55b1a99dfd-250x250.png','https://prefecthq.github.io/prefect-databricks/credentials/#prefect_databricks.credentials.DatabricksCredentials','Block used to manage Databricks authentication. This block is part of the prefect-databricks collection. Install prefect-databricks with `pip install prefect-databricks` to use this block.','Load stored Databricks credentials:
```python
from prefect_databricks import DatabricksCredentials
databricks_credentials_block = DatabricksCredentials.load("BLOCK_NAME")
```',0,'databricks-credentials');
INSERT INTO "block_type" VALUES('187aa1be-3730-4668-8d7f-f94644ad40c3','2026-11-26 20:19:07.375033','2026-11-26 20:19:07.375039','dbt CLI BigQuery Target Configs','https://cdn.sanity.io/images/3ugk85nk/production/1f4742f3473da5a9fc873430a803bb739e5e48a6-400x400.png','https://prefecthq.github.io/prefect-dbt/cli/configs/bigquery/#prefect_dbt.cli.configs.bigquery.BigQueryTargetConfigs','dbt CLI target configs containing credentials and settings, specific to BigQuery. This block is part of the prefect-dbt collection. Install prefect-dbt with `pip install prefect-dbt` to use this block.','Load stored BigQueryTargetConfigs.
```python
from prefect_dbt.cli.configs import BigQueryTargetConfigs

bigquery_target_configs = BigQueryTargetConfigs.load("BLOCK_NAME")
```

Instantiate BigQueryTargetConfigs.
```python
from prefect_dbt.cli.configs import BigQueryTargetConfigs
from prefect_gcp.credentials import GcpCredentials

credentials = GcpCredentials.load("BLOCK-NAME-PLACEHOLDER")
target_configs = BigQueryTargetConfigs(
    schema="schema",  # also known as dataset
    credentials=credentials,
)
```',0,'dbt-cli-bigquery-target-configs');
INSERT INTO "block_type" VALUES('af89f35e-1a75-4822-aafe-c6bc737305ee','2026-11-26 20:19:07.377623','2026-11-26 20:19:07.377629','dbt CLI Global Configs','https://cdn.sanity.io/images/3ugk85nk/production/1f4742f3473da5a9fc873430a803bb739e5e48a6-400x400.png','https://prefecthq.github.io/prefect-dbt/cli/configs/base/#prefect_dbt.cli.configs.base.GlobalConfigs','Global configs control things like the visual output
of logs, the manner in which dbt parses your project,
and what to do when dbt finds a version mismatch
or a failing model. Docs can be found [here](
https://docs.getdbt.com/reference/global-configs). This block is part of the prefect-dbt collection. Install prefect-dbt with `pip install prefect-dbt` to use this block.','Load stored GlobalConfigs:
```python
from prefect_dbt.cli.configs import GlobalConfigs

dbt_cli_global_configs = GlobalConfigs.load("BLOCK_NAME")
```',0,'dbt-cli-global-configs');
INSERT INTO "block_type" VALUES('99f3596c-276b-4fc7-b509-7d25fdc24703','2026-11-26 20:19:07.380191','2026-11-26 20:19:07.380197','dbt CLI Postgres Target Configs','https://cdn.sanity.io/images/3ugk85nk/production/1f4742f3473da5a9fc873430a803bb739e5e48a6-400x400.png','https://prefecthq.github.io/prefect-dbt/cli/configs/postgres/#prefect_dbt.cli.configs.postgres.PostgresTargetConfigs','dbt CLI target configs containing credentials and settings specific to Postgres. This block is part of the prefect-dbt collection. Install prefect-dbt with `pip install prefect-dbt` to use this block.','Load stored PostgresTargetConfigs:
```python
from prefect_dbt.cli.configs import PostgresTargetConfigs

postgres_target_configs = PostgresTargetConfigs.load("BLOCK_NAME")
```

Instantiate PostgresTargetConfigs with DatabaseCredentials.
```python
from prefect_dbt.cli.configs import PostgresTargetConfigs
from prefect_sqlalchemy import DatabaseCredentials, SyncDriver

credentials = DatabaseCredentials(
    driver=SyncDriver.POSTGRESQL_PSYCOPG2,
    username="prefect",
    password="prefect_password",
    database="postgres",
    host="host",
    port=8080
)
target_configs = PostgresTargetConfigs(credentials=credentials, schema="schema")
```',0,'dbt-cli-postgres-target-configs');
INSERT INTO "block_type" VALUES('59f77228-34e2-49ba-993e-67fc8b9b377a','2026-11-26 20:19:07.382773','2026-11-26 20:19:07.382779','dbt CLI Profile','https://cdn.sanity.io/images/3ugk85nk/production/1f4742f3473da5a9fc873430a803bb739e5e48a6-400x400.png','https://prefecthq.github.io/prefect-dbt/cli/credentials/#prefect_dbt.cli.credentials.DbtCliProfile','Profile for use across dbt CLI tasks and flows. This block is part of the prefect-dbt collection. Install prefect-dbt with `pip install prefect-dbt` to use this block.','Load stored dbt CLI profile:
```python
from prefect_dbt.cli import DbtCliProfile
dbt_cli_profile = DbtCliProfile.load("BLOCK_NAME").get_profile()
```

Get a dbt Snowflake profile from DbtCliProfile by using SnowflakeTargetConfigs:
```python
from prefect_dbt.cli import DbtCliProfile
from prefect_dbt.cli.configs import SnowflakeTargetConfigs
from prefect_snowflake.credentials import SnowflakeCredentials
from prefect_snowflake.database import SnowflakeConnector

credentials = SnowflakeCredentials(
    user="user",
    password="password",
    account="account.region.aws",
    role="role",
)
connector = SnowflakeConnector(
    schema="public",
    database="database",
    warehouse="warehouse",
    credentials=credentials,
)
target_configs = SnowflakeTargetConfigs(
    connector=connector
)
dbt_cli_profile = DbtCliProfile(
    name="jaffle_shop",
    target="dev",
    target_configs=target_configs,
)
profile = dbt_cli_profile.get_profile()
```

Get a dbt Redshift profile from DbtCliProfile by using generic TargetConfigs:
```python
from prefect_dbt.cli import DbtCliProfile
from prefect_dbt.cli.configs import GlobalConfigs, TargetConfigs

target_configs_extras = dict(
    host="hostname.region.redshift.amazonaws.com",
    user="username",
    password="password1",
    port=5439,
    dbname="analytics",
)
target_configs = TargetConfigs(
    type="redshift",
    schema="schema",
    threads=4,
    extras=target_configs_extras
)
dbt_cli_profile = DbtCliProfile(
    name="jaffle_shop",
    target="dev",
    target_configs=target_configs,
)
profile = dbt_cli_profile.get_profile()
```',0,'dbt-cli-profile');
INSERT INTO "block_type" VALUES('7c787b67-90b3-4f0e-9915-b3291db9fd6f','2026-11-26 20:19:07.385597','2026-11-26 20:19:07.385603','dbt CLI Snowflake Target Configs','https://cdn.sanity.io/images/3ugk85nk/production/1f4742f3473da5a9fc873430a803bb739e5e48a6-400x400.png','https://prefecthq.github.io/prefect-dbt/cli/configs/snowflake/#prefect_dbt.cli.configs.snowflake.SnowflakeTargetConfigs','Target configs contain credentials and
settings, specific to Snowflake.
To find valid keys, head to the [Snowflake Profile](
https://docs.getdbt.com/reference/warehouse-profiles/snowflake-profile)
page. This block is part of the prefect-dbt collection. Install prefect-dbt with `pip install prefect-dbt` to use this block.','Load stored SnowflakeTargetConfigs:
```python
from prefect_dbt.cli.configs import SnowflakeTargetConfigs

snowflake_target_configs = SnowflakeTargetConfigs.load("BLOCK_NAME")
```

Instantiate SnowflakeTargetConfigs.
```python
from prefect_dbt.cli.configs import SnowflakeTargetConfigs
from prefect_snowflake.credentials import SnowflakeCredentials
from prefect_snowflake.database import SnowflakeConnector

credentials = SnowflakeCredentials(
    user="user",
    password="password",
    account="account.region.aws",
    role="role",
)
connector = SnowflakeConnector(
    schema="public",
    database="database",
    warehouse="warehouse",
    credentials=credentials,
)
target_configs = SnowflakeTargetConfigs(
    connector=connector,
    extras={"retry_on_database_errors": True},
)
```',0,'dbt-cli-snowflake-target-configs');
INSERT INTO "block_type" VALUES('bf08ae03-f194-441d-9315-55ed0128ecec','2026-11-26 20:19:07.388268','2026-11-26 20:19:07.388274','dbt CLI Target Configs','https://cdn.sanity.io/images/3ugk85nk/production/1f4742f3473da5a9fc873430a803bb739e5e48a6-400x400.png','https://prefecthq.github.io/prefect-dbt/cli/configs/base/#prefect_dbt.cli.configs.base.TargetConfigs','Target configs contain credentials and
settings, specific to the warehouse you''re connecting to.
To find valid keys, head to the [Available adapters](
https://docs.getdbt.com/docs/available-adapters) page and
click the desired adapter''s "Profile Setup" hyperlink. This block is part of the prefect-dbt collection. Install prefect-dbt with `pip install prefect-dbt` to use this block.','Load stored TargetConfigs:
```python
from prefect_dbt.cli.configs import TargetConfigs

dbt_cli_target_configs = TargetConfigs.load("BLOCK_NAME")
```',0,'dbt-cli-target-configs');
INSERT INTO "block_type" VALUES('b533e83a-305e-4f2a-8120-f4568f7326d6','2026-11-26 20:19:07.390789','2026-11-26 20:19:07.390794','dbt Cloud Credentials','https://cdn.sanity.io/images/3ugk85nk/production/1f4742f3473da5a9fc873430a803bb739e5e48a6-400x400.png','https://prefecthq.github.io/prefect-dbt/cloud/credentials/#prefect_dbt.cloud.credentials.DbtCloudCredentials','Credentials block for credential use across dbt Cloud tasks and flows. This block is part of the prefect-dbt collection. Install prefect-dbt with `pip install prefect-dbt` to use this block.','Load stored dbt Cloud credentials:
```python
from prefect_dbt.cloud import DbtCloudCredentials

dbt_cloud_credentials = DbtCloudCredentials.load("BLOCK_NAME")
```

Use DbtCloudCredentials instance to trigger a job run:
```python
from prefect_dbt.cloud import DbtCloudCredentials

credentials = DbtCloudCredentials(api_key="my_api_key", account_id=123456789)

async with dbt_cloud_credentials.get_administrative_client() as client:
    client.trigger_job_run(job_id=1)
```

Load saved dbt Cloud credentials within a flow:
```python
from prefect import flow

from prefect_dbt.cloud import DbtCloudCredentials
from prefect_dbt.cloud.jobs import trigger_dbt_cloud_job_run


@flow
def trigger_dbt_cloud_job_run_flow():
    credentials = DbtCloudCredentials.load("my-dbt-credentials")
    trigger_dbt_cloud_job_run(dbt_cloud_credentials=credentials, job_id=1)

trigger_dbt_cloud_job_run_flow()
```',0,'dbt-cloud-credentials');
INSERT INTO "block_type" VALUES('c6819aec-7c19-4adf-abd3-e0fc1441c37d','2026-11-26 20:19:07.393351','2026-11-26 20:19:07.393357','dbt Core Operation','https://cdn.sanity.io/images/3ugk85nk/production/1f4742f3473da5a9fc873430a803bb739e5e48a6-400x400.png','https://prefecthq.github.io/prefect-dbt/cli/commands/#prefect_dbt.cli.commands.DbtCoreOperation','A block representing a dbt operation, containing multiple dbt and shell commands.

For long-lasting operations, use the trigger method and utilize the block as a
context manager for automatic closure of processes when context is exited.
If not, manually call the close method to close processes.

For short-lasting operations, use the run method. Context is automatically managed
with this method. This block is part of the prefect-dbt collection. Install prefect-dbt with `pip install prefect-dbt` to use this block.','Load a configured block.
```python
from prefect_dbt import DbtCoreOperation

dbt_op = DbtCoreOperation.load("BLOCK_NAME")
```

Execute short-lasting dbt debug and list with a custom DbtCliProfile.
```python
from prefect_dbt import DbtCoreOperation, DbtCliProfile
from prefect_dbt.cli.configs import SnowflakeTargetConfigs
from prefect_snowflake import SnowflakeConnector

snowflake_connector = await SnowflakeConnector.load("snowflake-connector")
target_configs = SnowflakeTargetConfigs(connector=snowflake_connector)
dbt_cli_profile = DbtCliProfile(
    name="jaffle_shop",
    target="dev",
    target_configs=target_configs,
)
dbt_init = DbtCoreOperation(
    commands=["dbt debug", "dbt list"],
    dbt_cli_profile=dbt_cli_profile,
    overwrite_profiles=True
)
dbt_init.run()
```

Execute a longer-lasting dbt run as a context manager.
```python
with DbtCoreOperation(commands=["dbt run"]) as dbt_run:
    dbt_process = dbt_run.trigger()
    # do other things
    dbt_process.wait_for_completion()
    dbt_output = dbt_process.fetch_result()
```',0,'dbt-core-operation');
INSERT INTO "block_type" VALUES('bda0ac58-93a9-47bd-a77b-bd34f54775bf','2026-11-26 20:19:07.395897','2026-11-26 20:19:07.395903','Docker Host','https://cdn.sanity.io/images/3ugk85nk/production/14a315b79990200db7341e42553e23650b34bb96-250x250.png',NULL,'Store settings for interacting with a Docker host. This block is part of the prefect-docker collection. Install prefect-docker with `pip install prefect-docker` to use this block.','Get a Docker Host client.
```python
from prefect_docker import DockerHost

docker_host = DockerHost(
base_url="tcp://127.0.0.1:1234",
    max_pool_size=4
)
with docker_host.get_client() as client:
    ... # Use the client for Docker operations
```',0,'docker-host');
INSERT INTO "block_type" VALUES('af3356fe-b6c4-48cc-9042-58e64e00f9cd','2026-11-26 20:19:07.398452','2026-11-26 20:19:07.398458','Docker Registry Credentials','https://cdn.sanity.io/images/3ugk85nk/production/14a315b79990200db7341e42553e23650b34bb96-250x250.png',NULL,'Store credentials for interacting with a Docker Registry. This block is part of the prefect-docker collection. Install prefect-docker with `pip install prefect-docker` to use this block.','Log into Docker Registry.
```python
from prefect_docker import DockerHost, DockerRegistryCredentials

docker_host = DockerHost()
docker_registry_credentials = DockerRegistryCredentials(
    username="my_username",
    password="my_password",
    registry_url="registry.hub.docker.com",
)
with docker_host.get_client() as client:
    docker_registry_credentials.login(client)
```',0,'docker-registry-credentials');
INSERT INTO "block_type" VALUES('e514bc03-ac7d-43d2-9494-086f29f982fe','2026-11-26 20:19:07.402407','2026-11-26 20:19:07.402416','Email Server Credentials','https://cdn.sanity.io/images/3ugk85nk/production/82bc6ed16ca42a2252a5512c72233a253b8a58eb-250x250.png','https://prefecthq.github.io/prefect-email/credentials/#prefect_email.credentials.EmailServerCredentials','Block used to manage generic email server authentication.
It is recommended you use a
[Google App Password](https://support.google.com/accounts/answer/185833)
if you use Gmail. This block is part of the prefect-email collection. Install prefect-email with `pip install prefect-email` to use this block.','Load stored email server credentials:
```python
from prefect_email import EmailServerCredentials
email_credentials_block = EmailServerCredentials.load("BLOCK_NAME")
```',0,'email-server-credentials');
INSERT INTO "block_type" VALUES('b0b6ac7d-3bc1-42ad-9810-ef37a2e5e2f9','2026-11-26 20:19:07.405348','2026-11-26 20:19:07.405356','BigQuery Warehouse','https://cdn.sanity.io/images/3ugk85nk/production/10424e311932e31c477ac2b9ef3d53cefbaad708-250x250.png','https://prefecthq.github.io/prefect-gcp/bigquery/#prefect_gcp.bigquery.BigQueryWarehouse','A block for querying a database with BigQuery.

Upon instantiating, a connection to BigQuery is established
and maintained for the life of the object until the close method is called.

It is recommended to use this block as a context manager, which will automatically
close the connection and its cursors when the context is exited.

It is also recommended that this block is loaded and consumed within a single task
or flow because if the block is passed across separate tasks and flows,
the state of the block''s connection and cursor could be lost. This block is part of the prefect-gcp collection. Install prefect-gcp with `pip install prefect-gcp` to use this block.','```python
from prefect_gcp.bigquery import BigQueryWarehouse

bigquery_warehouse_block = BigQueryWarehouse.load("BLOCK_NAME")
```',0,'bigquery-warehouse');
INSERT INTO "block_type" VALUES('12a9e4d2-b9f6-44a9-ad57-020c3ac04c11','2026-11-26 20:19:07.409117','2026-11-26 20:19:07.409128','GCP Credentials','https://cdn.sanity.io/images/3ugk85nk/production/10424e311932e31c477ac2b9ef3d53cefbaad708-250x250.png','https://prefecthq.github.io/prefect-gcp/credentials/#prefect_gcp.credentials.GcpCredentials','Block used to manage authentication with GCP. Google authentication is
handled via the `google.oauth2` module or through the CLI.
Specify either one of service `account_file` or `service_account_info`; if both
are not specified, the client will try to detect the credentials following Google''s
[Application Default Credentials](https://cloud.google.com/docs/authentication/application-default-credentials).
See Google''s [Authentication documentation](https://cloud.google.com/docs/authentication#service-accounts)
for details on inference and recommended authentication patterns. This block is part of the prefect-gcp collection. Install prefect-gcp with `pip install prefect-gcp` to use this block.','Load GCP credentials stored in a `GCP Credentials` Block:
```python
from prefect_gcp import GcpCredentials
gcp_credentials_block = GcpCredentials.load("BLOCK_NAME")
```',0,'gcp-credentials');
INSERT INTO "block_type" VALUES('87a65b21-3648-4e50-b4d9-b1d74be2c25d','2026-11-26 20:19:07.413131','2026-11-26 20:19:07.413143','GcpSecret','https://cdn.sanity.io/images/3ugk85nk/production/10424e311932e31c477ac2b9ef3d53cefbaad708-250x250.png','https://prefecthq.github.io/prefect-gcp/secret_manager/#prefect_gcp.secret_manager.GcpSecret','Manages a secret in Google Cloud Platform''s Secret Manager. This block is part of the prefect-gcp collection. Install prefect-gcp with `pip install prefect-gcp` to use this block.','```python
from prefect_gcp.secret_manager import GcpSecret

gcpsecret_block = GcpSecret.load("BLOCK_NAME")
```',0,'gcpsecret');
INSERT INTO "block_type" VALUES('967731f1-ac2f-4e94-b95a-3e5702581057','2026-11-26 20:19:07.417552','2026-11-26 20:19:07.417565','GCS Bucket','https://cdn.sanity.io/images/3ugk85nk/production/10424e311932e31c477ac2b9ef3d53cefbaad708-250x250.png','https://prefecthq.github.io/prefect-gcp/cloud_storage/#prefect_gcp.cloud_storage.GcsBucket','Block used to store data using GCP Cloud Storage Buckets.

Note! `GcsBucket` in `prefect-gcp` is a unique block, separate from `GCS`
in core Prefect. `GcsBucket` does not use `gcsfs` under the hood,
instead using the `google-cloud-storage` package, and offers more configuration
and functionality. This block is part of the prefect-gcp collection. Install prefect-gcp with `pip install prefect-gcp` to use this block.','Load stored GCP Cloud Storage Bucket:
```python
from prefect_gcp.cloud_storage import GcsBucket
gcp_cloud_storage_bucket_block = GcsBucket.load("BLOCK_NAME")
```',0,'gcs-bucket');
INSERT INTO "block_type" VALUES('5b6c7461-f3ef-4693-b65e-65267655e908','2026-11-26 20:19:07.421636','2026-11-26 20:19:07.421646','GitHub Credentials','https://cdn.sanity.io/images/3ugk85nk/production/41971cfecfea5f79ff334164f06ecb34d1038dd4-250x250.png','https://prefecthq.github.io/prefect-github/credentials/#prefect_github.credentials.GitHubCredentials','Block used to manage GitHub authentication. This block is part of the prefect-github collection. Install prefect-github with `pip install prefect-github` to use this block.','Load stored GitHub credentials:
```python
from prefect_github import GitHubCredentials
github_credentials_block = GitHubCredentials.load("BLOCK_NAME")
```',0,'github-credentials');
INSERT INTO "block_type" VALUES('afd091bb-4b60-4ff8-80d1-771323521192','2026-11-26 20:19:07.425112','2026-11-26 20:19:07.425124','GitHub Repository','https://cdn.sanity.io/images/3ugk85nk/production/41971cfecfea5f79ff334164f06ecb34d1038dd4-250x250.png','https://prefecthq.github.io/prefect-github/repository/#prefect_github.repository.GitHubRepository','Interact with files stored on GitHub repositories. This block is part of the prefect-github collection. Install prefect-github with `pip install prefect-github` to use this block.','```python
from prefect_github.repository import GitHubRepository

github_repository_block = GitHubRepository.load("BLOCK_NAME")
```',0,'github-repository');
INSERT INTO "block_type" VALUES('d12ffa9b-52f8-4e05-80c8-82b55ef16481','2026-11-26 20:19:07.429351','2026-11-26 20:19:07.429362','GitLab Credentials','https://cdn.sanity.io/images/3ugk85nk/production/a5db0f07a1bb4390f0e1cda9f7ef9091d89633b9-250x250.png',NULL,'Store a GitLab personal access token to interact with private GitLab
repositories. This block is part of the prefect-gitlab collection. Install prefect-gitlab with `pip install prefect-gitlab` to use this block.','Load stored GitLab credentials:
```python
from prefect_gitlab import GitLabCredentials
gitlab_credentials_block = GitLabCredentials.load("BLOCK_NAME")
```',0,'gitlab-credentials');
INSERT INTO "block_type" VALUES('07e00828-aa61-4c45-98cc-a74c3de969de','2026-11-26 20:19:07.433790','2026-11-26 20:19:07.433804','GitLab Repository','https://cdn.sanity.io/images/3ugk85nk/production/a5db0f07a1bb4390f0e1cda9f7ef9091d89633b9-250x250.png',NULL,'Interact with files stored in GitLab repositories. This block is part of the prefect-gitlab collection. Install prefect-gitlab with `pip install prefect-gitlab` to use this block.','```python
from prefect_gitlab.repositories import GitLabRepository

gitlab_repository_block = GitLabRepository.load("BLOCK_NAME")
```',0,'gitlab-repository');
INSERT INTO "block_type" VALUES('7ffbdb51-b22c-404d-8517-8ec7d9e1dc64','2026-11-26 20:19:07.438423','2026-11-26 20:19:07.438435','Kubernetes Cluster Config','https://cdn.sanity.io/images/3ugk85nk/production/2d0b896006ad463b49c28aaac14f31e00e32cfab-250x250.png','https://docs.prefect.io/api-ref/prefect/blocks/kubernetes/#prefect.blocks.kubernetes.KubernetesClusterConfig','Stores configuration for interaction with Kubernetes clusters.

See `from_file` for creation.','Load a saved Kubernetes cluster config:
```python
from prefect.blocks.kubernetes import KubernetesClusterConfig

cluster_config_block = KubernetesClusterConfig.load("BLOCK_NAME")
```',0,'kubernetes-cluster-config');
INSERT INTO "block_type" VALUES('d438e73d-379b-4f90-b350-f6f6a44c31c6','2026-11-26 20:19:07.442573','2026-11-26 20:19:07.442586','Kubernetes Credentials','https://cdn.sanity.io/images/3ugk85nk/production/2d0b896006ad463b49c28aaac14f31e00e32cfab-250x250.png','https://prefecthq.github.io/prefect-kubernetes/credentials/#prefect_kubernetes.credentials.KubernetesCredentials','Credentials block for generating configured Kubernetes API clients. This block is part of the prefect-kubernetes collection. Install prefect-kubernetes with `pip install prefect-kubernetes` to use this block.','Load stored Kubernetes credentials:
```python
from prefect_kubernetes.credentials import KubernetesCredentials

kubernetes_credentials = KubernetesCredentials.load("BLOCK_NAME")
```',0,'kubernetes-credentials');
INSERT INTO "block_type" VALUES('dd015d8f-5087-4615-8b12-c8113c901e9d','2026-11-26 20:19:07.448371','2026-11-26 20:19:07.448382','Shell Operation','https://cdn.sanity.io/images/3ugk85nk/production/0b47a017e1b40381de770c17647c49cdf6388d1c-250x250.png','https://prefecthq.github.io/prefect-shell/commands/#prefect_shell.commands.ShellOperation','A block representing a shell operation, containing multiple commands.

For long-lasting operations, use the trigger method and utilize the block as a
context manager for automatic closure of processes when context is exited.
If not, manually call the close method to close processes.

For short-lasting operations, use the run method. Context is automatically managed
with this method. This block is part of the prefect-shell collection. Install prefect-shell with `pip install prefect-shell` to use this block.','Load a configured block:
```python
from prefect_shell import ShellOperation

shell_operation = ShellOperation.load("BLOCK_NAME")
```',0,'shell-operation');
INSERT INTO "block_type" VALUES('ffdaac01-ea1e-4f4b-9e58-df8e01d93b98','2026-11-26 20:19:07.467482','2026-11-26 20:19:07.467489','Slack Credentials','https://cdn.sanity.io/images/3ugk85nk/production/c1965ecbf8704ee1ea20d77786de9a41ce1087d1-500x500.png','https://prefecthq.github.io/prefect-slack/credentials/#prefect_slack.credentials.SlackCredentials','Block holding Slack credentials for use in tasks and flows. This block is part of the prefect-slack collection. Install prefect-slack with `pip install prefect-slack` to use this block.','Load stored Slack credentials:
```python
from prefect_slack import SlackCredentials
slack_credentials_block = SlackCredentials.load("BLOCK_NAME")
```

Get a Slack client:
```python
from prefect_slack import SlackCredentials
slack_credentials_block = SlackCredentials.load("BLOCK_NAME")
client = slack_credentials_block.get_client()
```',0,'slack-credentials');
INSERT INTO "block_type" VALUES('dd250648-024f-460a-9baa-27e680e887c6','2026-11-26 20:19:07.500705','2026-11-26 20:19:07.500723','Snowflake Connector','https://cdn.sanity.io/images/3ugk85nk/production/bd359de0b4be76c2254bd329fe3a267a1a3879c2-250x250.png','https://prefecthq.github.io/prefect-snowflake/database/#prefect_snowflake.database.SnowflakeConnector','Perform data operations against a Snowflake database. This block is part of the prefect-snowflake collection. Install prefect-snowflake with `pip install prefect-snowflake` to use this block.','Load stored Snowflake connector as a context manager:
```python
from prefect_snowflake.database import SnowflakeConnector

snowflake_connector = SnowflakeConnector.load("BLOCK_NAME"):
```

Insert data into database and fetch results.
```python
from prefect_snowflake.database import SnowflakeConnector

with SnowflakeConnector.load("BLOCK_NAME") as conn:
    conn.execute(
        "CREATE TABLE IF NOT EXISTS customers (name varchar, address varchar);"
    )
    conn.execute_many(
        "INSERT INTO customers (name, address) VALUES (%(name)s, %(address)s);",
        seq_of_parameters=[
            {"name": "Ford", "address": "Highway 42"},
            {"name": "Unknown", "address": "Space"},
            {"name": "Me", "address": "Myway 88"},
        ],
    )
    results = conn.fetch_all(
        "SELECT * FROM customers WHERE address = %(address)s",
        parameters={"address": "Space"}
    )
    print(results)
```',0,'snowflake-connector');
INSERT INTO "block_type" VALUES('4781e74e-dddb-4fa8-88ad-39c6aa4aaa93','2026-11-26 20:19:07.541313','2026-11-26 20:19:07.541332','Snowflake Credentials','https://cdn.sanity.io/images/3ugk85nk/production/bd359de0b4be76c2254bd329fe3a267a1a3879c2-250x250.png','https://prefecthq.github.io/prefect-snowflake/credentials/#prefect_snowflake.credentials.SnowflakeCredentials','Block used to manage authentication with Snowflake. This block is part of the prefect-snowflake collection. Install prefect-snowflake with `pip install prefect-snowflake` to use this block.','Load stored Snowflake credentials:
```python
from prefect_snowflake import SnowflakeCredentials

snowflake_credentials_block = SnowflakeCredentials.load("BLOCK_NAME")
```',0,'snowflake-credentials');
INSERT INTO "block_type" VALUES('1f2acc0c-25e7-4706-8620-b70e42a29cd9','2026-11-26 20:19:07.644688','2026-11-26 20:19:07.644709','Database Credentials','https://cdn.sanity.io/images/3ugk85nk/production/fb3f4debabcda1c5a3aeea4f5b3f94c28845e23e-250x250.png','https://prefecthq.github.io/prefect-sqlalchemy/credentials/#prefect_sqlalchemy.credentials.DatabaseCredentials','Block used to manage authentication with a database. This block is part of the prefect-sqlalchemy collection. Install prefect-sqlalchemy with `pip install prefect-sqlalchemy` to use this block.','Load stored database credentials:
```python
from prefect_sqlalchemy import DatabaseCredentials
database_block = DatabaseCredentials.load("BLOCK_NAME")
```',0,'database-credentials');
INSERT INTO "block_type" VALUES('ff880278-faa4-4dcf-993d-3f26204270b3','2026-11-26 20:19:07.684690','2026-11-26 20:19:07.684710','SQLAlchemy Connector','https://cdn.sanity.io/images/3ugk85nk/production/3c7dff04f70aaf4528e184a3b028f9e40b98d68c-250x250.png','https://prefecthq.github.io/prefect-sqlalchemy/database/#prefect_sqlalchemy.database.SqlAlchemyConnector','Block used to manage authentication with a database.

Upon instantiating, an engine is created and maintained for the life of
the object until the close method is called.

It is recommended to use this block as a context manager, which will automatically
close the engine and its connections when the context is exited.

It is also recommended that this block is loaded and consumed within a single task
or flow because if the block is passed across separate tasks and flows,
the state of the block''s connection and cursor could be lost. This block is part of the prefect-sqlalchemy collection. Install prefect-sqlalchemy with `pip install prefect-sqlalchemy` to use this block.','Load stored database credentials and use in context manager:
```python
from prefect_sqlalchemy import SqlAlchemyConnector

database_block = SqlAlchemyConnector.load("BLOCK_NAME")
with database_block:
    ...
```

Create table named customers and insert values; then fetch the first 10 rows.
```python
from prefect_sqlalchemy import (
    SqlAlchemyConnector, SyncDriver, ConnectionComponents
)

with SqlAlchemyConnector(
    connection_info=ConnectionComponents(
        driver=SyncDriver.SQLITE_PYSQLITE,
        database="prefect.db"
    )
) as database:
    database.execute(
        "CREATE TABLE IF NOT EXISTS customers (name varchar, address varchar);",
    )
    for i in range(1, 42):
        database.execute(
            "INSERT INTO customers (name, address) VALUES (:name, :address);",
            parameters={"name": "Marvin", "address": f"Highway {i}"},
        )
    results = database.fetch_many(
        "SELECT * FROM customers WHERE name = :name;",
        parameters={"name": "Marvin"},
        size=10
    )
print(results)
```',0,'sqlalchemy-connector');
CREATE TABLE composite_trigger_child_firing (
	automation_id CHAR(36) NOT NULL, 
	parent_trigger_id CHAR(36) NOT NULL, 
	child_trigger_id CHAR(36) NOT NULL, 
	child_firing_id CHAR(36) NOT NULL, 
	child_fired_at DATETIME, 
	child_firing JSON NOT NULL, 
	id CHAR(36) DEFAULT (
    (
        lower(hex(randomblob(4)))
        || '-'
        || lower(hex(randomblob(2)))
        || '-4'
        || substr(lower(hex(randomblob(2))),2)
        || '-'
        || substr('89ab',abs(random()) % 4 + 1, 1)
        || substr(lower(hex(randomblob(2))),2)
        || '-'
        || lower(hex(randomblob(6)))
    )
    ) NOT NULL, 
	created DATETIME DEFAULT (strftime('%Y-%m-%d %H:%M:%f000', 'now')) NOT NULL, 
	updated DATETIME DEFAULT (strftime('%Y-%m-%d %H:%M:%f000', 'now')) NOT NULL, 
	CONSTRAINT pk_composite_trigger_child_firing PRIMARY KEY (id), 
	CONSTRAINT fk_composite_trigger_child_firing__automation_id__automation FOREIGN KEY(automation_id) REFERENCES automation (id) ON DELETE CASCADE
);
CREATE TABLE concurrency_limit (
	id CHAR(36) DEFAULT (
    (
        lower(hex(randomblob(4))) 
        || '-' 
        || lower(hex(randomblob(2))) 
        || '-4' 
        || substr(lower(hex(randomblob(2))),2) 
        || '-' 
        || substr('89ab',abs(random()) % 4 + 1, 1) 
        || substr(lower(hex(randomblob(2))),2) 
        || '-' 
        || lower(hex(randomblob(6)))
    )
    ) NOT NULL, 
	created DATETIME DEFAULT (strftime('%Y-%m-%d %H:%M:%f000', 'now')) NOT NULL, 
	updated DATETIME DEFAULT (strftime('%Y-%m-%d %H:%M:%f000', 'now')) NOT NULL, 
	tag VARCHAR NOT NULL, 
	concurrency_limit INTEGER NOT NULL, 
	active_slots JSON DEFAULT '[]' NOT NULL, 
	CONSTRAINT pk_concurrency_limit PRIMARY KEY (id)
);
CREATE TABLE "concurrency_limit_v2" (
	id CHAR(36) DEFAULT ((
        lower(hex(randomblob(4)))
        || '-'
        || lower(hex(randomblob(2)))
        || '-4'
        || substr(lower(hex(randomblob(2))),2)
        || '-'
        || substr('89ab',abs(random()) % 4 + 1, 1)
        || substr(lower(hex(randomblob(2))),2)
        || '-'
        || lower(hex(randomblob(6)))
    )) NOT NULL, 
	created DATETIME DEFAULT (strftime('%Y-%m-%d %H:%M:%f000', 'now')) NOT NULL, 
	updated DATETIME DEFAULT (strftime('%Y-%m-%d %H:%M:%f000', 'now')) NOT NULL, 
	active BOOLEAN NOT NULL, 
	name VARCHAR NOT NULL, 
	"limit" INTEGER NOT NULL, 
	active_slots INTEGER NOT NULL, 
	denied_slots INTEGER NOT NULL, 
	slot_decay_per_second FLOAT NOT NULL, 
	avg_slot_occupancy_seconds FLOAT NOT NULL, 
	CONSTRAINT pk_concurrency_limit_v2 PRIMARY KEY (id), 
	CONSTRAINT uq_concurrency_limit_v2__name UNIQUE (name)
);
CREATE TABLE configuration (
	id CHAR(36) DEFAULT (
    (
        lower(hex(randomblob(4))) 
        || '-' 
        || lower(hex(randomblob(2))) 
        || '-4' 
        || substr(lower(hex(randomblob(2))),2) 
        || '-' 
        || substr('89ab',abs(random()) % 4 + 1, 1) 
        || substr(lower(hex(randomblob(2))),2) 
        || '-' 
        || lower(hex(randomblob(6)))
    )
    ) NOT NULL, 
	created DATETIME DEFAULT (strftime('%Y-%m-%d %H:%M:%f000', 'now')) NOT NULL, 
	updated DATETIME DEFAULT (strftime('%Y-%m-%d %H:%M:%f000', 'now')) NOT NULL, 
	"key" VARCHAR NOT NULL, 
	value JSON NOT NULL, 
	CONSTRAINT pk_configuration PRIMARY KEY (id), 
	CONSTRAINT uq_configuration__key UNIQUE ("key")
);
CREATE TABLE csrf_token (
	token VARCHAR NOT NULL, 
	client VARCHAR NOT NULL, 
	expiration DATETIME NOT NULL, 
	id CHAR(36) DEFAULT (
    (
        lower(hex(randomblob(4)))
        || '-'
        || lower(hex(randomblob(2)))
        || '-4'
        || substr(lower(hex(randomblob(2))),2)
        || '-'
        || substr('89ab',abs(random()) % 4 + 1, 1)
        || substr(lower(hex(randomblob(2))),2)
        || '-'
        || lower(hex(randomblob(6)))
    )
    ) NOT NULL, 
	created DATETIME DEFAULT (strftime('%Y-%m-%d %H:%M:%f000', 'now')) NOT NULL, 
	updated DATETIME DEFAULT (strftime('%Y-%m-%d %H:%M:%f000', 'now')) NOT NULL, 
	CONSTRAINT pk_csrf_token PRIMARY KEY (id), 
	CONSTRAINT uq_csrf_token__client UNIQUE (client)
);
CREATE TABLE "deployment" (
	id CHAR(36) DEFAULT ((
        lower(hex(randomblob(4))) 
        || '-' 
        || lower(hex(randomblob(2))) 
        || '-4' 
        || substr(lower(hex(randomblob(2))),2) 
        || '-' 
        || substr('89ab',abs(random()) % 4 + 1, 1) 
        || substr(lower(hex(randomblob(2))),2) 
        || '-' 
        || lower(hex(randomblob(6)))
    )) NOT NULL, 
	created DATETIME DEFAULT (strftime('%Y-%m-%d %H:%M:%f000', 'now')) NOT NULL, 
	updated DATETIME DEFAULT (strftime('%Y-%m-%d %H:%M:%f000', 'now')) NOT NULL, 
	name VARCHAR NOT NULL, 
	tags JSON DEFAULT '[]' NOT NULL, 
	parameters JSON DEFAULT '{}' NOT NULL, 
	flow_id CHAR(36) NOT NULL, 
	description TEXT, 
	infrastructure_document_id CHAR(36), 
	parameter_openapi_schema JSON, 
	storage_document_id CHAR(36), 
	version VARCHAR, 
	infra_overrides JSON DEFAULT '{}' NOT NULL, 
	path VARCHAR, 
	entrypoint VARCHAR, 
	work_queue_name VARCHAR, 
	created_by JSON, 
	updated_by JSON, 
	work_queue_id CHAR(36), 
	pull_steps JSON, 
	enforce_parameter_schema BOOLEAN DEFAULT '0' NOT NULL, 
	last_polled DATETIME, 
	paused BOOLEAN DEFAULT '0' NOT NULL, 
	status VARCHAR(9) DEFAULT 'NOT_READY' NOT NULL, 
	concurrency_limit INTEGER, 
	concurrency_options JSON, 
	concurrency_limit_id CHAR(36), 
	labels JSON, version_id CHAR(36), 
	CONSTRAINT pk_deployment PRIMARY KEY (id), 
	CONSTRAINT fk_deployment__infrastructure_document_id__block_document FOREIGN KEY(infrastructure_document_id) REFERENCES block_document (id) ON DELETE CASCADE, 
	CONSTRAINT fk_deployment__concurrency_limit_id__concurrency_limit_v2 FOREIGN KEY(concurrency_limit_id) REFERENCES concurrency_limit_v2 (id) ON DELETE SET NULL, 
	CONSTRAINT fk_deployment__flow_id__flow FOREIGN KEY(flow_id) REFERENCES flow (id) ON DELETE CASCADE, 
	CONSTRAINT fk_deployment__storage_document_id__block_document FOREIGN KEY(storage_document_id) REFERENCES block_document (id) ON DELETE CASCADE, 
	CONSTRAINT fk_deployment__work_queue_id__work_queue FOREIGN KEY(work_queue_id) REFERENCES work_queue (id) ON DELETE SET NULL
);
CREATE TABLE "deployment_schedule" (
	id CHAR(36) DEFAULT ((
        lower(hex(randomblob(4)))
        || '-'
        || lower(hex(randomblob(2)))
        || '-4'
        || substr(lower(hex(randomblob(2))),2)
        || '-'
        || substr('89ab',abs(random()) % 4 + 1, 1)
        || substr(lower(hex(randomblob(2))),2)
        || '-'
        || lower(hex(randomblob(6)))
    )) NOT NULL, 
	created DATETIME DEFAULT (strftime('%Y-%m-%d %H:%M:%f000', 'now')) NOT NULL, 
	updated DATETIME DEFAULT (strftime('%Y-%m-%d %H:%M:%f000', 'now')) NOT NULL, 
	schedule JSON NOT NULL, 
	active BOOLEAN NOT NULL, 
	deployment_id CHAR(36) NOT NULL, 
	max_scheduled_runs INTEGER, parameters JSON DEFAULT '{}' NOT NULL, slug VARCHAR, 
	CONSTRAINT pk_deployment_schedule PRIMARY KEY (id), 
	CONSTRAINT fk_deployment_schedule__deployment_id__deployment FOREIGN KEY(deployment_id) REFERENCES deployment (id) ON DELETE CASCADE
);
CREATE TABLE deployment_version (
	deployment_id CHAR(36) NOT NULL, 
	branch VARCHAR, 
	version_info JSON DEFAULT '{}' NOT NULL, 
	description TEXT, 
	tags JSON DEFAULT '[]' NOT NULL, 
	labels JSON, 
	entrypoint VARCHAR, 
	pull_steps JSON, 
	parameters JSON DEFAULT '{}' NOT NULL, 
	parameter_openapi_schema JSON, 
	enforce_parameter_schema BOOLEAN DEFAULT '0' NOT NULL, 
	work_queue_id CHAR(36), 
	work_queue_name VARCHAR, 
	infra_overrides JSON DEFAULT '{}' NOT NULL, 
	id CHAR(36) DEFAULT (GEN_RANDOM_UUID()) NOT NULL, 
	created DATETIME DEFAULT CURRENT_TIMESTAMP NOT NULL, 
	updated DATETIME DEFAULT CURRENT_TIMESTAMP NOT NULL, 
	CONSTRAINT pk_deployment_version PRIMARY KEY (id), 
	CONSTRAINT fk_deployment_version__deployment_id__deployment FOREIGN KEY(deployment_id) REFERENCES deployment (id) ON DELETE CASCADE, 
	CONSTRAINT fk_deployment_version__work_queue_id__work_queue FOREIGN KEY(work_queue_id) REFERENCES work_queue (id) ON DELETE SET NULL
);
CREATE TABLE event_resources (
	occurred DATETIME NOT NULL, 
	resource_id TEXT NOT NULL, 
	resource_role TEXT NOT NULL, 
	resource JSON NOT NULL, 
	event_id CHAR(36) NOT NULL, 
	id CHAR(36) DEFAULT (
    (
        lower(hex(randomblob(4)))
        || '-'
        || lower(hex(randomblob(2)))
        || '-4'
        || substr(lower(hex(randomblob(2))),2)
        || '-'
        || substr('89ab',abs(random()) % 4 + 1, 1)
        || substr(lower(hex(randomblob(2))),2)
        || '-'
        || lower(hex(randomblob(6)))
    )
    ) NOT NULL, 
	created DATETIME DEFAULT (strftime('%Y-%m-%d %H:%M:%f000', 'now')) NOT NULL, 
	updated DATETIME DEFAULT (strftime('%Y-%m-%d %H:%M:%f000', 'now')) NOT NULL, 
	CONSTRAINT pk_event_resources PRIMARY KEY (id)
);
CREATE TABLE events (
	occurred DATETIME NOT NULL, 
	event TEXT NOT NULL, 
	resource_id TEXT NOT NULL, 
	resource JSON NOT NULL, 
	related_resource_ids JSON DEFAULT '[]' NOT NULL, 
	related JSON DEFAULT '[]' NOT NULL, 
	payload JSON NOT NULL, 
	received DATETIME NOT NULL, 
	recorded DATETIME NOT NULL, 
	follows CHAR(36), 
	id CHAR(36) DEFAULT (
    (
        lower(hex(randomblob(4)))
        || '-'
        || lower(hex(randomblob(2)))
        || '-4'
        || substr(lower(hex(randomblob(2))),2)
        || '-'
        || substr('89ab',abs(random()) % 4 + 1, 1)
        || substr(lower(hex(randomblob(2))),2)
        || '-'
        || lower(hex(randomblob(6)))
    )
    ) NOT NULL, 
	created DATETIME DEFAULT (strftime('%Y-%m-%d %H:%M:%f000', 'now')) NOT NULL, 
	updated DATETIME DEFAULT (strftime('%Y-%m-%d %H:%M:%f000', 'now')) NOT NULL, 
	CONSTRAINT pk_events PRIMARY KEY (id)
);
CREATE TABLE flow (
	id CHAR(36) DEFAULT (
    (
        lower(hex(randomblob(4))) 
        || '-' 
        || lower(hex(randomblob(2))) 
        || '-4' 
        || substr(lower(hex(randomblob(2))),2) 
        || '-' 
        || substr('89ab',abs(random()) % 4 + 1, 1) 
        || substr(lower(hex(randomblob(2))),2) 
        || '-' 
        || lower(hex(randomblob(6)))
    )
    ) NOT NULL, 
	created DATETIME DEFAULT (strftime('%Y-%m-%d %H:%M:%f000', 'now')) NOT NULL, 
	updated DATETIME DEFAULT (strftime('%Y-%m-%d %H:%M:%f000', 'now')) NOT NULL, 
	name VARCHAR NOT NULL, 
	tags JSON DEFAULT '[]' NOT NULL, labels JSON, 
	CONSTRAINT pk_flow PRIMARY KEY (id), 
	CONSTRAINT uq_flow__name UNIQUE (name)
);
CREATE TABLE "flow_run" (
	id CHAR(36) DEFAULT ((
        lower(hex(randomblob(4))) 
        || '-' 
        || lower(hex(randomblob(2))) 
        || '-4' 
        || substr(lower(hex(randomblob(2))),2) 
        || '-' 
        || substr('89ab',abs(random()) % 4 + 1, 1) 
        || substr(lower(hex(randomblob(2))),2) 
        || '-' 
        || lower(hex(randomblob(6)))
    )) NOT NULL, 
	created DATETIME DEFAULT (strftime('%Y-%m-%d %H:%M:%f000', 'now')) NOT NULL, 
	updated DATETIME DEFAULT (strftime('%Y-%m-%d %H:%M:%f000', 'now')) NOT NULL, 
	name VARCHAR NOT NULL, 
	state_type VARCHAR(9), 
	run_count INTEGER DEFAULT '0' NOT NULL, 
	expected_start_time DATETIME, 
	next_scheduled_start_time DATETIME, 
	start_time DATETIME, 
	end_time DATETIME, 
	total_run_time DATETIME DEFAULT '0' NOT NULL, 
	flow_version VARCHAR, 
	parameters JSON DEFAULT '{}' NOT NULL, 
	idempotency_key VARCHAR, 
	context JSON DEFAULT '{}' NOT NULL, 
	empirical_policy JSON DEFAULT '{}' NOT NULL, 
	tags JSON DEFAULT '[]' NOT NULL, 
	auto_scheduled BOOLEAN DEFAULT '0' NOT NULL, 
	flow_id CHAR(36) NOT NULL, 
	deployment_id CHAR(36), 
	parent_task_run_id CHAR(36), 
	state_id CHAR(36), 
	state_name VARCHAR, 
	infrastructure_document_id CHAR(36), 
	work_queue_name VARCHAR, 
	state_timestamp DATETIME, 
	created_by JSON, 
	infrastructure_pid VARCHAR, 
	work_queue_id CHAR(36), job_variables JSON DEFAULT '{}', deployment_version VARCHAR, labels JSON, 
	CONSTRAINT pk_flow_run PRIMARY KEY (id), 
	CONSTRAINT fk_flow_run__state_id__flow_run_state FOREIGN KEY(state_id) REFERENCES flow_run_state (id) ON DELETE SET NULL, 
	CONSTRAINT fk_flow_run__flow_id__flow FOREIGN KEY(flow_id) REFERENCES flow (id) ON DELETE CASCADE, 
	CONSTRAINT fk_flow_run__work_queue_id__work_queue FOREIGN KEY(work_queue_id) REFERENCES work_queue (id) ON DELETE SET NULL, 
	CONSTRAINT fk_flow_run__infrastructure_document_id__block_document FOREIGN KEY(infrastructure_document_id) REFERENCES block_document (id) ON DELETE CASCADE, 
	CONSTRAINT fk_flow_run__parent_task_run_id__task_run FOREIGN KEY(parent_task_run_id) REFERENCES task_run (id) ON DELETE SET NULL
);
CREATE TABLE "flow_run_input" (
	id CHAR(36) DEFAULT ((
        lower(hex(randomblob(4)))
        || '-'
        || lower(hex(randomblob(2)))
        || '-4'
        || substr(lower(hex(randomblob(2))),2)
        || '-'
        || substr('89ab',abs(random()) % 4 + 1, 1)
        || substr(lower(hex(randomblob(2))),2)
        || '-'
        || lower(hex(randomblob(6)))
    )) NOT NULL, 
	created DATETIME DEFAULT (strftime('%Y-%m-%d %H:%M:%f000', 'now')) NOT NULL, 
	updated DATETIME DEFAULT (strftime('%Y-%m-%d %H:%M:%f000', 'now')) NOT NULL, 
	"key" VARCHAR NOT NULL, 
	value TEXT NOT NULL, 
	flow_run_id CHAR(36) NOT NULL, sender VARCHAR, 
	CONSTRAINT pk_flow_run_input PRIMARY KEY (id), 
	CONSTRAINT uq_flow_run_input__flow_run_id_key UNIQUE (flow_run_id, "key"), 
	CONSTRAINT fk_flow_run_input__flow_run_id__flow_run FOREIGN KEY(flow_run_id) REFERENCES flow_run (id) ON DELETE cascade
);
CREATE TABLE "flow_run_state" (
	id CHAR(36) DEFAULT ((
        lower(hex(randomblob(4))) 
        || '-' 
        || lower(hex(randomblob(2))) 
        || '-4' 
        || substr(lower(hex(randomblob(2))),2) 
        || '-' 
        || substr('89ab',abs(random()) % 4 + 1, 1) 
        || substr(lower(hex(randomblob(2))),2) 
        || '-' 
        || lower(hex(randomblob(6)))
    )) NOT NULL, 
	created DATETIME DEFAULT (strftime('%Y-%m-%d %H:%M:%f000', 'now')) NOT NULL, 
	updated DATETIME DEFAULT (strftime('%Y-%m-%d %H:%M:%f000', 'now')) NOT NULL, 
	type VARCHAR(9) NOT NULL, 
	timestamp DATETIME DEFAULT (strftime('%Y-%m-%d %H:%M:%f000', 'now')) NOT NULL, 
	name VARCHAR NOT NULL, 
	message VARCHAR, 
	state_details JSON DEFAULT '{}' NOT NULL, 
	data JSON, 
	flow_run_id CHAR(36) NOT NULL, 
	result_artifact_id CHAR(36), 
	CONSTRAINT pk_flow_run_state PRIMARY KEY (id), 
	CONSTRAINT fk_flow_run_state__result_artifact_id__artifact FOREIGN KEY(result_artifact_id) REFERENCES artifact (id) ON DELETE SET NULL, 
	CONSTRAINT fk_flow_run_state__flow_run_id__flow_run FOREIGN KEY(flow_run_id) REFERENCES flow_run (id) ON DELETE CASCADE
);
CREATE TABLE "log" (
	id CHAR(36) DEFAULT ((
        lower(hex(randomblob(4))) 
        || '-' 
        || lower(hex(randomblob(2))) 
        || '-4' 
        || substr(lower(hex(randomblob(2))),2) 
        || '-' 
        || substr('89ab',abs(random()) % 4 + 1, 1) 
        || substr(lower(hex(randomblob(2))),2) 
        || '-' 
        || lower(hex(randomblob(6)))
    )) NOT NULL, 
	created DATETIME DEFAULT (strftime('%Y-%m-%d %H:%M:%f000', 'now')) NOT NULL, 
	updated DATETIME DEFAULT (strftime('%Y-%m-%d %H:%M:%f000', 'now')) NOT NULL, 
	name VARCHAR NOT NULL, 
	level SMALLINT NOT NULL, 
	flow_run_id CHAR(36), 
	task_run_id CHAR(36), 
	message TEXT NOT NULL, 
	timestamp DATETIME NOT NULL, 
	CONSTRAINT pk_log PRIMARY KEY (id)
);
CREATE TABLE saved_search (
	id CHAR(36) DEFAULT (
    (
        lower(hex(randomblob(4))) 
        || '-' 
        || lower(hex(randomblob(2))) 
        || '-4' 
        || substr(lower(hex(randomblob(2))),2) 
        || '-' 
        || substr('89ab',abs(random()) % 4 + 1, 1) 
        || substr(lower(hex(randomblob(2))),2) 
        || '-' 
        || lower(hex(randomblob(6)))
    )
    ) NOT NULL, 
	created DATETIME DEFAULT (strftime('%Y-%m-%d %H:%M:%f000', 'now')) NOT NULL, 
	updated DATETIME DEFAULT (strftime('%Y-%m-%d %H:%M:%f000', 'now')) NOT NULL, 
	name VARCHAR NOT NULL, 
	filters JSON DEFAULT '[]' NOT NULL, 
	CONSTRAINT pk_saved_search PRIMARY KEY (id), 
	CONSTRAINT uq_saved_search__name UNIQUE (name)
);
CREATE TABLE "task_run" (
	id CHAR(36) DEFAULT ((
        lower(hex(randomblob(4))) 
        || '-' 
        || lower(hex(randomblob(2))) 
        || '-4' 
        || substr(lower(hex(randomblob(2))),2) 
        || '-' 
        || substr('89ab',abs(random()) % 4 + 1, 1) 
        || substr(lower(hex(randomblob(2))),2) 
        || '-' 
        || lower(hex(randomblob(6)))
    )) NOT NULL, 
	created DATETIME DEFAULT (strftime('%Y-%m-%d %H:%M:%f000', 'now')) NOT NULL, 
	updated DATETIME DEFAULT (strftime('%Y-%m-%d %H:%M:%f000', 'now')) NOT NULL, 
	name VARCHAR NOT NULL, 
	state_type VARCHAR(9), 
	run_count INTEGER DEFAULT '0' NOT NULL, 
	expected_start_time DATETIME, 
	next_scheduled_start_time DATETIME, 
	start_time DATETIME, 
	end_time DATETIME, 
	total_run_time DATETIME DEFAULT '0' NOT NULL, 
	task_key VARCHAR NOT NULL, 
	dynamic_key VARCHAR NOT NULL, 
	cache_key VARCHAR, 
	cache_expiration DATETIME, 
	task_version VARCHAR, 
	empirical_policy JSON DEFAULT '{}' NOT NULL, 
	task_inputs JSON DEFAULT '{}' NOT NULL, 
	tags JSON DEFAULT '[]' NOT NULL, 
	flow_run_id CHAR(36), 
	state_id CHAR(36), 
	state_name VARCHAR, 
	state_timestamp DATETIME, 
	flow_run_run_count INTEGER DEFAULT '0' NOT NULL, 
	labels JSON, 
	CONSTRAINT pk_task_run PRIMARY KEY (id), 
	CONSTRAINT fk_task_run__flow_run_id__flow_run FOREIGN KEY(flow_run_id) REFERENCES flow_run (id) ON DELETE CASCADE
);
CREATE TABLE "task_run_state" (
	id CHAR(36) DEFAULT ((
        lower(hex(randomblob(4))) 
        || '-' 
        || lower(hex(randomblob(2))) 
        || '-4' 
        || substr(lower(hex(randomblob(2))),2) 
        || '-' 
        || substr('89ab',abs(random()) % 4 + 1, 1) 
        || substr(lower(hex(randomblob(2))),2) 
        || '-' 
        || lower(hex(randomblob(6)))
    )) NOT NULL, 
	created DATETIME DEFAULT (strftime('%Y-%m-%d %H:%M:%f000', 'now')) NOT NULL, 
	updated DATETIME DEFAULT (strftime('%Y-%m-%d %H:%M:%f000', 'now')) NOT NULL, 
	type VARCHAR(9) NOT NULL, 
	timestamp DATETIME DEFAULT (strftime('%Y-%m-%d %H:%M:%f000', 'now')) NOT NULL, 
	name VARCHAR NOT NULL, 
	message VARCHAR, 
	state_details JSON DEFAULT '{}' NOT NULL, 
	data JSON, 
	task_run_id CHAR(36) NOT NULL, 
	result_artifact_id CHAR(36), 
	CONSTRAINT pk_task_run_state PRIMARY KEY (id), 
	CONSTRAINT fk_task_run_state__result_artifact_id__artifact FOREIGN KEY(result_artifact_id) REFERENCES artifact (id) ON DELETE SET NULL, 
	CONSTRAINT fk_task_run_state__task_run_id__task_run FOREIGN KEY(task_run_id) REFERENCES task_run (id) ON DELETE CASCADE
);
CREATE TABLE task_run_state_cache (
	id CHAR(36) DEFAULT (
    (
        lower(hex(randomblob(4))) 
        || '-' 
        || lower(hex(randomblob(2))) 
        || '-4' 
        || substr(lower(hex(randomblob(2))),2) 
        || '-' 
        || substr('89ab',abs(random()) % 4 + 1, 1) 
        || substr(lower(hex(randomblob(2))),2) 
        || '-' 
        || lower(hex(randomblob(6)))
    )
    ) NOT NULL, 
	created DATETIME DEFAULT (strftime('%Y-%m-%d %H:%M:%f000', 'now')) NOT NULL, 
	updated DATETIME DEFAULT (strftime('%Y-%m-%d %H:%M:%f000', 'now')) NOT NULL, 
	cache_key VARCHAR NOT NULL, 
	cache_expiration DATETIME, 
	task_run_state_id CHAR(36) NOT NULL, 
	CONSTRAINT pk_task_run_state_cache PRIMARY KEY (id)
);
CREATE TABLE "variable" (
	id CHAR(36) DEFAULT ((
        lower(hex(randomblob(4)))
        || '-'
        || lower(hex(randomblob(2)))
        || '-4'
        || substr(lower(hex(randomblob(2))),2)
        || '-'
        || substr('89ab',abs(random()) % 4 + 1, 1)
        || substr(lower(hex(randomblob(2))),2)
        || '-'
        || lower(hex(randomblob(6)))
    )) NOT NULL, 
	created DATETIME DEFAULT (strftime('%Y-%m-%d %H:%M:%f000', 'now')) NOT NULL, 
	updated DATETIME DEFAULT (strftime('%Y-%m-%d %H:%M:%f000', 'now')) NOT NULL, 
	name VARCHAR NOT NULL, 
	tags JSON DEFAULT '[]' NOT NULL, 
	value JSON, 
	CONSTRAINT pk_variable PRIMARY KEY (id), 
	CONSTRAINT uq_variable__name UNIQUE (name)
);
CREATE TABLE "work_pool" (
	id CHAR(36) DEFAULT ((
        lower(hex(randomblob(4)))
        || '-'
        || lower(hex(randomblob(2)))
        || '-4'
        || substr(lower(hex(randomblob(2))),2)
        || '-'
        || substr('89ab',abs(random()) % 4 + 1, 1)
        || substr(lower(hex(randomblob(2))),2)
        || '-'
        || lower(hex(randomblob(6)))
    )) NOT NULL, 
	created DATETIME DEFAULT (strftime('%Y-%m-%d %H:%M:%f000', 'now')) NOT NULL, 
	updated DATETIME DEFAULT (strftime('%Y-%m-%d %H:%M:%f000', 'now')) NOT NULL, 
	name VARCHAR NOT NULL, 
	description VARCHAR, 
	type VARCHAR NOT NULL, 
	base_job_template JSON DEFAULT '{}' NOT NULL, 
	is_paused BOOLEAN DEFAULT '0' NOT NULL, 
	concurrency_limit INTEGER, 
	default_queue_id CHAR(36), status VARCHAR(9) DEFAULT 'NOT_READY' NOT NULL, last_transitioned_status_at DATETIME, last_status_event_id CHAR(36), storage_configuration JSON DEFAULT '{}' NOT NULL, 
	CONSTRAINT pk_work_pool PRIMARY KEY (id), 
	CONSTRAINT uq_work_pool__name UNIQUE (name), 
	CONSTRAINT fk_work_pool__default_queue_id__work_queue FOREIGN KEY(default_queue_id) REFERENCES work_queue (id) ON DELETE RESTRICT
);
CREATE TABLE "work_queue" (
	id CHAR(36) DEFAULT ((
        lower(hex(randomblob(4))) 
        || '-' 
        || lower(hex(randomblob(2))) 
        || '-4' 
        || substr(lower(hex(randomblob(2))),2) 
        || '-' 
        || substr('89ab',abs(random()) % 4 + 1, 1) 
        || substr(lower(hex(randomblob(2))),2) 
        || '-' 
        || lower(hex(randomblob(6)))
    )) NOT NULL, 
	created DATETIME DEFAULT (strftime('%Y-%m-%d %H:%M:%f000', 'now')) NOT NULL, 
	updated DATETIME DEFAULT (strftime('%Y-%m-%d %H:%M:%f000', 'now')) NOT NULL, 
	name VARCHAR NOT NULL, 
	filter JSON, 
	description VARCHAR DEFAULT ('') NOT NULL, 
	is_paused BOOLEAN DEFAULT '0' NOT NULL, 
	concurrency_limit INTEGER, 
	last_polled DATETIME, 
	priority INTEGER DEFAULT '1' NOT NULL, 
	work_pool_id CHAR(36) NOT NULL, status VARCHAR(9) DEFAULT 'NOT_READY' NOT NULL, 
	CONSTRAINT pk_work_queue PRIMARY KEY (id), 
	CONSTRAINT fk_work_queue__work_pool_id__work_pool FOREIGN KEY(work_pool_id) REFERENCES work_pool (id) ON DELETE CASCADE, 
	CONSTRAINT uq_work_queue__work_pool_id_name UNIQUE (work_pool_id, name)
);
CREATE TABLE worker (
	id CHAR(36) DEFAULT (
    (
        lower(hex(randomblob(4)))
        || '-'
        || lower(hex(randomblob(2)))
        || '-4'
        || substr(lower(hex(randomblob(2))),2)
        || '-'
        || substr('89ab',abs(random()) % 4 + 1, 1)
        || substr(lower(hex(randomblob(2))),2)
        || '-'
        || lower(hex(randomblob(6)))
    )
    ) NOT NULL, 
	created DATETIME DEFAULT (strftime('%Y-%m-%d %H:%M:%f000', 'now')) NOT NULL, 
	updated DATETIME DEFAULT (strftime('%Y-%m-%d %H:%M:%f000', 'now')) NOT NULL, 
	name VARCHAR NOT NULL, 
	last_heartbeat_time DATETIME DEFAULT (strftime('%Y-%m-%d %H:%M:%f000', 'now')) NOT NULL, 
	work_pool_id CHAR(36) NOT NULL, heartbeat_interval_seconds INTEGER, status VARCHAR(7) DEFAULT 'OFFLINE' NOT NULL, 
	CONSTRAINT pk_worker PRIMARY KEY (id), 
	CONSTRAINT fk_worker__work_pool_id__work_pool FOREIGN KEY(work_pool_id) REFERENCES work_pool (id) ON DELETE cascade, 
	CONSTRAINT uq_worker__work_pool_id_name UNIQUE (work_pool_id, name)
);
CREATE INDEX ix_flow__updated ON flow (updated);
CREATE INDEX ix_concurrency_limit__updated ON concurrency_limit (updated);
CREATE INDEX ix_saved_search__updated ON saved_search (updated);
CREATE INDEX ix_task_run_state_cache__cache_key_created_desc ON task_run_state_cache (cache_key, created DESC);
CREATE INDEX ix_task_run_state_cache__updated ON task_run_state_cache (updated);
CREATE INDEX ix_agent__updated ON agent (updated);
CREATE INDEX ix_agent__work_queue_id ON agent (work_queue_id);
CREATE INDEX ix_configuration__key ON configuration ("key");
CREATE INDEX ix_configuration__updated ON configuration (updated);
CREATE INDEX ix_flow__created ON flow (created);
CREATE INDEX ix_block_schema__updated ON block_schema (updated);
CREATE INDEX ix_block_schema_reference__updated ON block_schema_reference (updated);
CREATE INDEX ix_flow_name_case_insensitive on flow (name COLLATE NOCASE);
CREATE INDEX ix_block_schema__block_type_id ON block_schema (block_type_id);
CREATE INDEX ix_block_schema__created ON block_schema (created);
CREATE INDEX ix_block_document__is_anonymous ON block_document (is_anonymous);
CREATE INDEX ix_block_document__updated ON block_document (updated);
CREATE INDEX ix_block_document__name ON block_document (name);
CREATE UNIQUE INDEX uq_block__type_id_name ON block_document (block_type_id, name);
CREATE UNIQUE INDEX uq_block_type__slug ON block_type (slug);
CREATE INDEX ix_block_type_name_case_insensitive ON block_type (name);
CREATE INDEX ix_block_type__updated ON block_type (updated);
CREATE UNIQUE INDEX uq_concurrency_limit__tag ON concurrency_limit (tag);
CREATE UNIQUE INDEX uq_block_schema__checksum_version ON block_schema (checksum, version);
CREATE INDEX ix_worker__updated ON worker (updated);
CREATE INDEX ix_worker__work_pool_id_last_heartbeat_time ON worker (work_pool_id, last_heartbeat_time);
CREATE INDEX ix_worker__work_pool_id ON worker (work_pool_id);
CREATE INDEX ix_flow_run_state__result_artifact_id ON flow_run_state (result_artifact_id);
CREATE INDEX ix_flow_run_state__name ON flow_run_state (name);
CREATE INDEX ix_flow_run_state__type ON flow_run_state (type);
CREATE INDEX ix_flow_run_state__updated ON flow_run_state (updated);
CREATE UNIQUE INDEX uq_flow_run_state__flow_run_id_timestamp_desc ON flow_run_state (flow_run_id, timestamp);
CREATE INDEX ix_task_run_state__type ON task_run_state (type);
CREATE UNIQUE INDEX uq_task_run_state__task_run_id_timestamp_desc ON task_run_state (task_run_id, timestamp);
CREATE INDEX ix_task_run_state__updated ON task_run_state (updated);
CREATE INDEX ix_task_run_state__result_artifact_id ON task_run_state (result_artifact_id);
CREATE INDEX ix_task_run_state__name ON task_run_state (name);
CREATE INDEX ix_work_pool__type ON work_pool (type);
CREATE INDEX ix_work_pool__updated ON work_pool (updated);
CREATE INDEX ix_work_queue__work_pool_id_priority ON work_queue (work_pool_id, priority);
CREATE INDEX ix_work_queue__work_pool_id ON work_queue (work_pool_id);
CREATE INDEX ix_work_queue__updated ON work_queue (updated);
CREATE INDEX ix_artifact__flow_run_id ON artifact (flow_run_id);
CREATE INDEX ix_artifact__updated ON artifact (updated);
CREATE INDEX ix_artifact__task_run_id ON artifact (task_run_id);
CREATE INDEX ix_flow_run_name_case_insensitive ON flow_run (name);
CREATE INDEX ix_flow_run__infrastructure_document_id ON flow_run (infrastructure_document_id);
CREATE INDEX ix_flow_run__state_id ON flow_run (state_id);
CREATE INDEX ix_flow_run__expected_start_time_desc ON flow_run (expected_start_time);
CREATE INDEX ix_flow_run__name ON flow_run (name);
CREATE INDEX ix_flow_run__updated ON flow_run (updated);
CREATE INDEX ix_flow_run__flow_id ON flow_run (flow_id);
CREATE INDEX ix_flow_run__flow_version ON flow_run (flow_version);
CREATE UNIQUE INDEX uq_flow_run__flow_id_idempotency_key ON flow_run (flow_id, idempotency_key);
CREATE INDEX ix_flow_run__state_name ON flow_run (state_name);
CREATE INDEX ix_flow_run__next_scheduled_start_time_asc ON flow_run (next_scheduled_start_time);
CREATE INDEX ix_flow_run__work_queue_id ON flow_run (work_queue_id);
CREATE INDEX ix_flow_run__state_timestamp ON flow_run (state_timestamp);
CREATE INDEX ix_flow_run__parent_task_run_id ON flow_run (parent_task_run_id);
CREATE INDEX ix_flow_run__work_queue_name ON flow_run (work_queue_name);
CREATE INDEX ix_flow_run__end_time_desc ON flow_run (end_time);
CREATE INDEX ix_flow_run__start_time ON flow_run (start_time);
CREATE INDEX ix_flow_run__state_type ON flow_run (state_type);
CREATE INDEX ix_artifact__key ON artifact ("key");
CREATE INDEX ix_artifact_collection__key_latest_id ON artifact_collection ("key", latest_id);
CREATE INDEX ix_concurrency_limit_v2__updated ON concurrency_limit_v2 (updated);
CREATE INDEX ix_log__flow_run_id_timestamp ON log (flow_run_id, timestamp);
CREATE INDEX ix_log__timestamp ON log (timestamp);
CREATE INDEX ix_log__flow_run_id ON log (flow_run_id);
CREATE INDEX ix_log__level ON log (level);
CREATE INDEX ix_log__task_run_id ON log (task_run_id);
CREATE INDEX ix_log__updated ON log (updated);
CREATE INDEX ix_block_document_name_case_insensitive on block_document (name COLLATE NOCASE);
CREATE INDEX ix_flow_run_input__updated ON flow_run_input (updated);
CREATE INDEX ix_csrf_token__updated ON csrf_token (updated);
CREATE INDEX ix_automation__updated ON automation (updated);
CREATE INDEX ix_automation_related_resource__resource_id ON automation_related_resource (resource_id);
CREATE INDEX ix_automation_related_resource__updated ON automation_related_resource (updated);
CREATE UNIQUE INDEX uq_automation_related_resource__automation_id__resource_id ON automation_related_resource (automation_id, resource_id);
CREATE INDEX ix_composite_trigger_child_firing__updated ON composite_trigger_child_firing (updated);
CREATE UNIQUE INDEX uq_composite_trigger_child_firing__a_id__pt_id__ct__id ON composite_trigger_child_firing (automation_id, parent_trigger_id, child_trigger_id);
CREATE INDEX ix_flow_run__deployment_version ON flow_run (deployment_version);
CREATE INDEX ix_automation_bucket__updated ON automation_bucket (updated);
CREATE INDEX ix_automation_bucket__automation_id__end ON automation_bucket (automation_id, "end");
CREATE UNIQUE INDEX uq_automation_bucket__automation_id__trigger_id__bucketing_key ON automation_bucket (automation_id, trigger_id, bucketing_key);
CREATE INDEX ix_event_resources__resource_id__occurred ON event_resources (resource_id, occurred);
CREATE INDEX ix_event_resources__updated ON event_resources (updated);
CREATE INDEX ix_events__event__id ON events (event, id);
CREATE INDEX ix_events__event_occurred_id ON events (event, occurred, id);
CREATE INDEX ix_events__event_related_occurred ON events (event, related, occurred);
CREATE INDEX ix_events__event_resource_id_occurred ON events (event, resource_id, occurred);
CREATE INDEX ix_events__occurred ON events (occurred);
CREATE INDEX ix_events__occurred_id ON events (occurred, id);
CREATE INDEX ix_events__related_resource_ids ON events (related_resource_ids);
CREATE INDEX ix_events__updated ON events (updated);
CREATE INDEX ix_variable__updated ON variable (updated);
CREATE INDEX ix_automation_event_follower__received ON automation_event_follower (received);
CREATE INDEX ix_automation_event_follower__updated ON automation_event_follower (updated);
CREATE INDEX ix_automation_event_follower__leader_event_id ON automation_event_follower (leader_event_id);
CREATE INDEX ix_automation_event_follower__scope ON automation_event_follower (scope);
CREATE UNIQUE INDEX uq_follower_for_scope ON automation_event_follower (scope, follower_event_id);
CREATE INDEX ix_artifact_collection__updated ON artifact_collection (updated);
CREATE INDEX ix_artifact__key_created_desc ON artifact ("key", created DESC);
CREATE INDEX ix_block_document__block_type_name__name ON block_document (block_type_name, name);
CREATE UNIQUE INDEX uq_deployment__flow_id_name ON deployment (flow_id, name);
CREATE INDEX ix_deployment__work_queue_id ON deployment (work_queue_id);
CREATE INDEX ix_deployment__flow_id ON deployment (flow_id);
CREATE INDEX ix_deployment__work_queue_name ON deployment (work_queue_name);
CREATE INDEX ix_deployment__created ON deployment (created);
CREATE INDEX ix_deployment__updated ON deployment (updated);
CREATE INDEX ix_deployment_name_case_insensitive ON deployment (name);
CREATE INDEX ix_deployment__paused ON deployment (paused);
CREATE INDEX ix_deployment_schedule__deployment_id ON deployment_schedule (deployment_id);
CREATE INDEX ix_deployment_schedule__updated ON deployment_schedule (updated);
CREATE INDEX ix_flow_run__scheduler_deployment_id_auto_scheduled_next_schedu ON flow_run (deployment_id, auto_scheduled, next_scheduled_start_time) WHERE state_type = 'SCHEDULED';
CREATE INDEX ix_deployment_schedule__slug ON deployment_schedule (slug);
CREATE UNIQUE INDEX ix_deployment_schedule__deployment_id__slug
        ON deployment_schedule(deployment_id, slug)
        WHERE slug IS NOT NULL;
CREATE INDEX ix_deployment_version__deployment_id ON deployment_version (deployment_id);
CREATE INDEX ix_deployment_version__updated ON deployment_version (updated);
CREATE INDEX ix_deployment_version__work_queue_id ON deployment_version (work_queue_id);
CREATE INDEX ix_deployment_version__work_queue_name ON deployment_version (work_queue_name);
CREATE UNIQUE INDEX uq_deployment_version__deployment__branch ON deployment_version (deployment_id, branch);
CREATE INDEX ix_deployment__version_id ON deployment (version_id);
CREATE INDEX ix_ae_follower_scope_leader ON automation_event_follower (scope, leader_event_id);
CREATE INDEX ix_task_run__flow_run_id ON task_run (flow_run_id);
CREATE INDEX ix_task_run__start_time ON task_run (start_time);
CREATE INDEX ix_task_run__state_timestamp ON task_run (state_timestamp);
CREATE INDEX ix_task_run__next_scheduled_start_time_asc ON task_run (next_scheduled_start_time);
CREATE INDEX ix_task_run__expected_start_time_desc ON task_run (expected_start_time);
CREATE INDEX ix_task_run__name ON task_run (name);
CREATE INDEX ix_task_run__state_id ON task_run (state_id);
CREATE INDEX ix_task_run__updated ON task_run (updated);
CREATE UNIQUE INDEX uq_task_run__flow_run_id_task_key_dynamic_key ON task_run (flow_run_id, task_key, dynamic_key);
CREATE INDEX ix_task_run__state_name ON task_run (state_name);
CREATE INDEX ix_task_run_name_case_insensitive ON task_run (name);
CREATE INDEX ix_task_run__state_type ON task_run (state_type);
CREATE INDEX ix_task_run__end_time_desc ON task_run (end_time);
CREATE INDEX ix_flow_run__schedule_id_scheduler
        ON flow_run (deployment_id, json_extract(created_by, '$.id'), next_scheduled_start_time)
        WHERE state_type = 'SCHEDULED' AND auto_scheduled = 1;
CREATE INDEX ix_task_run__state_type_start_time
        ON task_run (state_type, start_time)
        ;
CREATE INDEX ix_block_document_reference__updated ON block_document_reference (updated);
CREATE INDEX ix_event_resources__occurred
        ON event_resources (occurred)
        ;
CREATE INDEX ix_event_resources__event_id
        ON event_resources (event_id)
        ;
CREATE INDEX ix_flow_run__deployment_id
        ON flow_run (deployment_id)
        ;
CREATE INDEX ix_flow_run__state_type_coalesce_start_time
        ON flow_run (state_type, coalesce(start_time, expected_start_time))
        ;
COMMIT;
