# Redmine, used through its pages and its REST interface, without a web server between.
require "action_dispatch/testing/integration"

def check(condition, what)
  raise "#{what}" unless condition
end

Setting.rest_api_enabled = "1"
admin = User.find_by(login: "admin")
admin.update!(must_change_passwd: false)
KEY = { "X-Redmine-API-Key" => admin.api_key, "CONTENT_TYPE" => "application/json" }
SITE = ActionDispatch::Integration::Session.new(Rails.application)
SITE.host = "localhost"

def rest(method, path, data = nil)
  SITE.process(method, path, params: data && data.to_json, headers: KEY)
  check SITE.response.status < 300, "#{method} #{path}: #{SITE.response.status} #{SITE.response.body[0, 400]}"
  SITE.response.body.empty? ? nil : JSON.parse(SITE.response.body)
end

project = rest(:post, "/projects.json", project: { name: "The sea 🐬", identifier: "sea", enabled_module_names: Redmine::AccessControl.available_project_modules })["project"]
child = rest(:post, "/projects.json", project: { name: "Reef", identifier: "reef", parent_id: project["id"], inherit_members: true })["project"]
bob = rest(:post, "/users.json", user: { login: "bob", firstname: "Bob", lastname: "Käse", mail: "bob@example.org", password: "other-word-8" })["user"]
rest(:post, "/projects/sea/memberships.json", membership: { user_id: bob["id"], role_ids: [Role.givable.first.id] })
version = rest(:post, "/projects/sea/versions.json", version: { name: "1.0", due_date: "2030-05-06" })["version"]

issues = (1..30).map do |number|
  rest(:post, "/issues.json", issue: { project_id: number.even? ? "sea" : "reef", subject: "Fish #{number} 🐟", description: "Deep words\n\n* don't \\ panic *", tracker_id: Tracker.first.id,
    priority_id: IssuePriority.first.id, done_ratio: number, estimated_hours: number / 2.0, assigned_to_id: number.even? ? bob["id"] : nil, start_date: "2030-01-%02d" % number })["issue"]["id"]
end
rest(:put, "/issues/#{issues[1]}.json", issue: { notes: "Changed 🐋", status_id: IssueStatus.where(is_closed: true).first.id, fixed_version_id: version["id"] })
rest(:post, "/issues/#{issues[3]}/relations.json", relation: { issue_to_id: issues[5], relation_type: "precedes", delay: 2 })
rest(:put, "/issues/#{issues[7]}.json", issue: { parent_issue_id: issues[9] })
rest(:post, "/time_entries.json", time_entry: { issue_id: issues[3], hours: 1.25, activity_id: TimeEntryActivity.first.id, spent_on: "2030-01-02" })
rest(:put, "/projects/sea/wiki/Wiki.json", wiki_page: { text: "h1. Whales\n\n[[Other]]" })
rest(:put, "/projects/sea/wiki/Wiki.json", wiki_page: { text: "h1. Whales\n\nchanged", comments: "why" })

found = rest(:get, "/issues.json?status_id=*&sort=done_ratio:desc&limit=5&offset=2")
check found["total_count"] == 30, "30 issues: #{found["total_count"]}"
check found["issues"].map { |issue| issue["done_ratio"] } == [28, 27, 26, 25, 24], "their order: #{found["issues"].map { |issue| issue["done_ratio"] }}"
check rest(:get, "/issues.json?project_id=sea&subproject_id=!*&status_id=open")["total_count"] == 14, "open issues of one project"
check rest(:get, "/search.json?q=fish+12")["total_count"] == 1, "the search"
issue = rest(:get, "/issues/#{issues[1]}.json?include=journals,children,relations")["issue"]
check issue["journals"].last["notes"] == "Changed 🐋" && issue["closed_on"], "the journal"
check rest(:get, "/issues/#{issues[9]}.json?include=children")["issue"]["children"].size == 1, "the nested set"
check Issue.find(issues[5]).start_date > Issue.find(issues[3]).due_before, "the issue that follows was moved" if Issue.find(issues[3]).due_before

# As a person, with a session.
SITE.get "/login"
token = SITE.response.body[/name="authenticity_token" value="([^"]+)"/, 1]
SITE.post "/login", params: { username: "bob", password: "other-word-8", authenticity_token: token }
check SITE.response.status == 302, "the login: #{SITE.response.status}"
%w[/ /my/page /projects /projects/sea /projects/sea/activity /projects/sea/roadmap /projects/sea/issues /issues?set_filter=1&group_by=status&t%5B%5D=estimated_hours
  /projects/sea/issues/gantt /projects/sea/issues/calendar /projects/sea/time_entries /projects/sea/time_entries/report?criteria%5B%5D=user /projects/sea/wiki /projects/sea/wiki/Wiki/history
  /projects/sea/issues/report /projects/sea/issues.csv /projects/sea/issues.atom /projects/sea/search?q=whales /versions/1 /time_entries.csv].each do |path|
  SITE.get path
  check SITE.response.status == 200, "#{path}: #{SITE.response.status}"
end
check SITE.response.body.include?("1.25"), "the time entry"
SITE.get "/issues/#{issues[1]}"
check SITE.response.body.include?("Changed 🐋"), "the page of an issue"
SITE.reset!
SITE.host = "localhost"
rest(:delete, "/issues/#{issues[9]}.json")
check Issue.count == 28, "an issue goes with its child: #{Issue.count}"
rest(:delete, "/projects/sea.json")
check Issue.count.zero? && Project.count.zero? && TimeEntry.count.zero? && WikiPage.count.zero?, "a project goes with all that is in it"
puts "ok"
